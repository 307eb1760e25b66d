//! The devices, and how full each is.
//!
//! Both drivers show the same devices, as on a real machine: what one of them allocates, the other lacks. Device and
//! shared allocations count against a device's size, host allocations don't.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::description::{self, Description, Others};

/// The architecture of the cards with the ids that are given by default: oneMKL refuses to work on a GPU without one.
pub const IP_VERSION: u32 = 0x030d_c008;

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Larger than a single allocation may be.
    TooLarge,
    /// Not as much is left.
    Full,
}

/// A device. Its address is its handle, and it lives as long as the process.
pub struct Device {
    /// What it is.
    pub description: Description,
    /// Its place in the list.
    pub index: usize,
    memory: Mutex<Memory>,
}

struct Memory {
    used: u64,
    other: Others,
    /// The allocation that is to fail, counted from the next, which is 1; 0 for none.
    fail_at: u64,
    free_delay: Duration,
    /// Freed bytes that are not given back yet, and when they will be.
    late: Vec<(Instant, u64)>,
}

impl Device {
    fn new(index: usize, description: Description) -> Self {
        let memory = Memory {
            used: 0,
            other: description.other.clone(),
            fail_at: 0,
            free_delay: Duration::ZERO,
            late: Vec::new(),
        };
        Self { description, index, memory: Mutex::new(memory) }
    }

    /// Takes room for an allocation. `any_size` is for callers that may ask for more than a single allocation has.
    pub fn reserve(&self, bytes: u64, any_size: bool) -> Result<(), Refusal> {
        let mut memory = self.memory();
        if bytes > self.description.max_alloc && !any_size {
            return Err(Refusal::TooLarge);
        }
        if memory.fail_at > 0 {
            memory.fail_at -= 1;
            if memory.fail_at == 0 {
                return Err(Refusal::Full);
            }
        }
        let taken = memory.used.saturating_add(memory.others());
        if bytes > self.description.mem.saturating_sub(taken) {
            return Err(Refusal::Full);
        }
        memory.used += bytes;
        Ok(())
    }

    /// Gives the room of an allocation back, later if a test asked for that.
    pub fn release(&self, bytes: u64) {
        let mut memory = self.memory();
        if memory.free_delay.is_zero() {
            memory.used -= bytes;
        } else {
            let due = Instant::now() + memory.free_delay;
            memory.late.push((due, bytes));
        }
    }

    /// What this process uses.
    pub fn used(&self) -> u64 {
        self.memory().used
    }

    /// What nobody uses.
    pub fn free(&self) -> u64 {
        let memory = self.memory();
        self.description.mem.saturating_sub(memory.used.saturating_add(memory.others()))
    }

    /// What other processes use from now on.
    pub fn set_others(&self, bytes: u64) {
        self.memory().other = Others::Bytes(bytes);
    }

    /// The `number`-th allocation from now fails, 1 being the next; 0 takes it back.
    pub fn fail_at(&self, number: u64) {
        self.memory().fail_at = number;
    }

    /// From now on, room is given back only so long after a free.
    pub fn delay_frees(&self, delay: Duration) {
        self.memory().free_delay = delay;
    }

    /// What both drivers tell the device by.
    pub fn uuid(&self) -> [u8; 16] {
        let mut uuid = [0; 16];
        uuid[..2].copy_from_slice(&0x8086u16.to_le_bytes());
        uuid[2..4].copy_from_slice(&(self.description.id as u16).to_le_bytes());
        uuid[8] = self.bus() as u8;
        uuid
    }

    /// The PCI bus that it sits on.
    pub fn bus(&self) -> u32 {
        3 + self.index as u32
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due: Vec<(Instant, u64)> = memory.late.extract_if(.., |(due, _)| *due <= now).collect();
        memory.used -= due.iter().map(|(_, bytes)| bytes).sum::<u64>();
        memory
    }
}

impl Memory {
    fn others(&self) -> u64 {
        match &self.other {
            Others::Bytes(bytes) => *bytes,
            // A file that is being written may be empty for a moment.
            Others::File(path) => {
                std::fs::read_to_string(path).ok().and_then(|text| description::size(&text).ok()).unwrap_or(0)
            }
        }
    }
}

/// All devices of this process.
pub fn devices() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let text = std::env::var(description::VARIABLE).unwrap_or_default();
        let read = description::read(&text).unwrap_or_else(|error| {
            eprintln!("simulated-devices: {}: {error}", description::VARIABLE);
            Vec::new()
        });
        read.into_iter().enumerate().map(|(index, one)| Device::new(index, one)).collect()
    })
}

/// The device that a handle stands for, if it is one of ours.
pub fn by_address(address: usize) -> Option<&'static Device> {
    devices().iter().find(|device| std::ptr::from_ref(*device).addr() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(text: &str) -> Device {
        Device::new(0, description::read(text).expect("it is right").remove(0))
    }

    #[test]
    fn a_full_device_refuses_until_something_is_freed() {
        let device = device("mem=100;max_alloc=60;other=10");
        assert_eq!(device.reserve(61, false), Err(Refusal::TooLarge));
        assert_eq!(device.reserve(60, false), Ok(()));
        assert_eq!(device.reserve(31, false), Err(Refusal::Full));
        assert_eq!(device.reserve(30, false), Ok(()));
        assert_eq!((device.used(), device.free()), (90, 0));
        device.release(60);
        assert_eq!((device.used(), device.free()), (30, 60));
        assert_eq!(device.reserve(u64::MAX, true), Err(Refusal::Full), "no overflow");
    }

    #[test]
    fn others_take_room() {
        let device = device("mem=100");
        device.set_others(95);
        assert_eq!(device.reserve(6, false), Err(Refusal::Full));
        device.set_others(200);
        assert_eq!(device.free(), 0);
    }

    #[test]
    fn others_may_be_told_by_a_file() {
        let file = std::env::temp_dir().join(format!("simulated-{}", std::process::id()));
        let device = device(&format!("mem=100MB;other=@{}", file.display()));
        assert_eq!(device.free(), 100_000_000, "no file, nobody else");
        std::fs::write(&file, "90MB\n").expect("a folder for temporary files");
        assert_eq!(device.free(), 10_000_000);
        std::fs::remove_file(&file).expect("it is there");
    }

    #[test]
    fn just_the_chosen_allocation_fails() {
        let device = device("mem=100");
        device.fail_at(2);
        let results: Vec<bool> = (0..3).map(|_| device.reserve(1, false).is_ok()).collect();
        assert_eq!(results, [true, false, true]);
    }

    #[test]
    fn late_frees_keep_the_room() {
        let device = device("mem=100");
        device.reserve(100, false).expect("it is empty");
        device.delay_frees(Duration::from_secs(3600));
        device.release(60);
        assert_eq!(device.used(), 100);
        device.delay_frees(Duration::ZERO);
        device.release(40);
        assert_eq!(device.used(), 60, "the first sixty are still late");
        device.reserve(40, false).expect("there is room");
        device.delay_frees(Duration::from_nanos(1));
        device.release(40);
        while device.used() > 60 {}
        assert_eq!(device.used(), 60, "what is late for longer holds nothing else up");
    }
}
