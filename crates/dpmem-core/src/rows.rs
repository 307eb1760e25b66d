//! What is in use on one device, by kind.
//!
//! Bytes of device and shared memory live in one 128-bit word, and those of host memory in another; every event changes
//! a word in one step. That gives the events of a word one order, and the peaks are the largest results of those steps,
//! so they are exact however many threads allocate, that of device and shared memory together included. Numbers of
//! blocks are kept in the same way. Totals (allocated, freed, refused) are not kept here: they are the sums of the
//! sites'.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::kind::{Kind, MAX_DEVICES};
use crate::sync::AtomicU128;

/// Bytes and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub count: u64,
}

/// The rows of a ledger: its own, or lent by a map that other processes read.
pub enum Rows {
    /// On the heap.
    Own(Box<[DeviceRows]>),
    /// In a map, until the ledger goes.
    #[cfg(not(loom))]
    Lent(crate::usage::LentRows),
}

impl Rows {
    /// Rows on the heap, one for each device.
    pub fn own() -> Rows {
        Rows::Own((0..MAX_DEVICES).map(|_| DeviceRows::default()).collect())
    }
}

impl std::ops::Deref for Rows {
    type Target = [DeviceRows];

    fn deref(&self) -> &[DeviceRows] {
        match self {
            Rows::Own(rows) => rows,
            #[cfg(not(loom))]
            Rows::Lent(rows) => rows.rows(),
        }
    }
}

/// What is in use and was at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// In use.
    pub current: Amount,
    /// The most bytes, and the most blocks, that were in use at a time.
    pub peak: Amount,
    /// The same since [`DeviceRows::reset_peaks`].
    pub resettable_peak: Amount,
}

/// What is in use on one device. All zero is what it is before any block; the layout is fixed because other processes
/// may read it ([`crate::UsageMap`]).
#[derive(Default)]
#[repr(C)]
pub struct DeviceRows {
    /// Device and shared memory.
    on_device: Pair,
    /// Host memory, in the first half.
    host: Pair,
    /// Peaks of each kind, in the order of their numbers, and of device and shared memory together.
    peaks: [Peaks; 4],
}

/// The place of device and shared memory together among the peaks.
const TOGETHER: usize = Kind::ALL.len();

/// Two amounts that change together: bytes and numbers of blocks of the first and the second.
#[repr(C)]
struct Pair {
    bytes: AtomicU128,
    counts: AtomicU64,
}

/// What one block more changes in the numbers of a [`Pair`].
const FIRST: u64 = 1;
const SECOND: u64 = 1 << 32;

#[derive(Default)]
#[repr(C)]
struct Peaks {
    ever: Peak,
    resettable: Peak,
}

#[derive(Default)]
#[repr(C)]
struct Peak {
    bytes: AtomicU64,
    count: AtomicU64,
}

impl DeviceRows {
    /// Takes a block in.
    pub fn add(&self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Host => self.peaks[kind as usize].raise(self.host.add(FIRST, bytes).0),
            Kind::Device | Kind::Shared => {
                let half = if kind == Kind::Device { FIRST } else { SECOND };
                let (device, shared) = self.on_device.add(half, bytes);
                self.peaks[kind as usize].raise(if kind == Kind::Device { device } else { shared });
                self.peaks[TOGETHER].raise(together(device, shared));
            }
        }
    }

    /// Takes a block out.
    pub fn sub(&self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Host => self.host.sub(FIRST, bytes),
            Kind::Device => self.on_device.sub(FIRST, bytes),
            Kind::Shared => self.on_device.sub(SECOND, bytes),
        }
    }

    /// Starts the resettable peaks anew from what is in use.
    pub fn reset_peaks(&self) {
        for kind in Kind::ALL {
            self.peaks[kind as usize].resettable.set(self.current(kind));
        }
        let (device, shared) = self.on_device.reading();
        self.peaks[TOGETHER].resettable.set(together(device, shared));
    }

    /// What is in use of one kind.
    pub fn reading(&self, kind: Kind) -> InUse {
        self.peaks[kind as usize].reading(self.current(kind))
    }

    /// What is in use of device and shared memory together.
    pub fn reading_on_device(&self) -> InUse {
        let (device, shared) = self.on_device.reading();
        self.peaks[TOGETHER].reading(together(device, shared))
    }

    /// Sets everything to what it is before any block.
    #[cfg(not(loom))]
    pub(crate) fn clear(&self) {
        for pair in [&self.on_device, &self.host] {
            pair.bytes.store(0, Relaxed);
            pair.counts.store(0, Relaxed);
        }
        for peak in self.peaks.iter().flat_map(|peaks| [&peaks.ever, &peaks.resettable]) {
            peak.set(Amount::default());
        }
    }

    /// What is in use and was at most, of each kind, as another process sees it: from a copy of the bytes of a
    /// `DeviceRows`. `None` if there are too few.
    #[cfg(not(loom))]
    pub(crate) fn decoded(copy: &[u8]) -> Option<[(Amount, Amount); Kind::ALL.len()]> {
        use std::mem::offset_of;

        let number = |at: usize| Some(u64::from_le_bytes(copy.get(at..at + 8)?.try_into().ok()?));
        let pair = |at: usize| {
            let bytes = at + offset_of!(Pair, bytes);
            Some(amounts((number(bytes)?, number(bytes + 8)?), number(at + offset_of!(Pair, counts))?))
        };
        let on_device = pair(offset_of!(DeviceRows, on_device))?;
        let host = pair(offset_of!(DeviceRows, host))?;
        let mut rows = [(Amount::default(), Amount::default()); Kind::ALL.len()];
        for kind in Kind::ALL {
            let peaks =
                offset_of!(DeviceRows, peaks) + kind as usize * size_of::<Peaks>() + offset_of!(Peaks, ever);
            let peak = Amount {
                bytes: number(peaks + offset_of!(Peak, bytes))?,
                count: number(peaks + offset_of!(Peak, count))?,
            };
            let current = match kind {
                Kind::Device => on_device.0,
                Kind::Shared => on_device.1,
                Kind::Host => host.0,
            };
            rows[kind as usize] = (current, peak);
        }
        Some(rows)
    }

    fn current(&self, kind: Kind) -> Amount {
        match kind {
            Kind::Device => self.on_device.reading().0,
            Kind::Shared => self.on_device.reading().1,
            Kind::Host => self.host.reading().0,
        }
    }
}

fn together(device: Amount, shared: Amount) -> Amount {
    Amount { bytes: device.bytes + shared.bytes, count: device.count + shared.count }
}

impl Default for Pair {
    fn default() -> Self {
        Pair { bytes: AtomicU128::new(0), counts: AtomicU64::new(0) }
    }
}

impl Pair {
    fn add(&self, half: u64, bytes: u64) -> (Amount, Amount) {
        let add = |(first, second): (u64, u64)| match half {
            FIRST => (first.saturating_add(bytes), second),
            _ => (first, second.saturating_add(bytes)),
        };
        let bytes = self.change(add);
        amounts(bytes, self.counts.fetch_add(half, Relaxed) + half)
    }

    fn sub(&self, half: u64, bytes: u64) {
        self.change(|(first, second)| match half {
            FIRST => (first.saturating_sub(bytes), second),
            _ => (first, second.saturating_sub(bytes)),
        });
        self.counts.fetch_sub(half, Relaxed);
    }

    fn reading(&self) -> (Amount, Amount) {
        amounts(unpack(self.bytes.load(Relaxed)), self.counts.load(Relaxed))
    }

    fn change(&self, next: impl Fn((u64, u64)) -> (u64, u64)) -> (u64, u64) {
        let mut word = self.bytes.load(Relaxed);
        loop {
            let new = next(unpack(word));
            let (first, second) = new;
            let packed = u128::from(first) | u128::from(second) << 64;
            match self.bytes.compare_exchange_weak(word, packed, Relaxed, Relaxed) {
                Ok(_) => return new,
                Err(seen) => word = seen,
            }
        }
    }
}

fn unpack(word: u128) -> (u64, u64) {
    (word as u64, (word >> 64) as u64)
}

fn amounts((first, second): (u64, u64), counts: u64) -> (Amount, Amount) {
    (Amount { bytes: first, count: counts & (SECOND - 1) }, Amount { bytes: second, count: counts >> 32 })
}

impl Peaks {
    fn raise(&self, current: Amount) {
        self.ever.raise(current);
        self.resettable.raise(current);
    }

    fn reading(&self, current: Amount) -> InUse {
        InUse { current, peak: self.ever.reading(), resettable_peak: self.resettable.reading() }
    }
}

impl Peak {
    fn raise(&self, current: Amount) {
        for (peak, value) in [(&self.bytes, current.bytes), (&self.count, current.count)] {
            // Most events set no peak, and a look costs less than a write.
            if value > peak.load(Relaxed) {
                peak.fetch_max(value, Relaxed);
            }
        }
    }

    fn set(&self, current: Amount) {
        self.bytes.store(current.bytes, Relaxed);
        self.count.store(current.count, Relaxed);
    }

    fn reading(&self) -> Amount {
        Amount { bytes: self.bytes.load(Relaxed), count: self.count.load(Relaxed) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_what_is_in_use_and_its_peaks() {
        let rows = DeviceRows::default();
        for kind in Kind::ALL {
            rows.add(kind, 10);
            rows.add(kind, 5);
            rows.sub(kind, 10);
            rows.add(kind, 1);
            let seen = rows.reading(kind);
            assert_eq!(seen.current, Amount { bytes: 6, count: 2 }, "{kind:?}");
            assert_eq!(seen.peak, Amount { bytes: 15, count: 2 }, "{kind:?}");
        }
    }

    #[test]
    fn device_and_shared_have_a_peak_together() {
        let rows = DeviceRows::default();
        rows.add(Kind::Device, 10);
        rows.add(Kind::Shared, 4);
        rows.add(Kind::Host, 1000);
        rows.sub(Kind::Device, 10);
        rows.add(Kind::Shared, 7);
        let together = rows.reading_on_device();
        assert_eq!(together.current, Amount { bytes: 11, count: 2 });
        assert_eq!(together.peak, Amount { bytes: 14, count: 2 });
        assert_eq!(rows.reading(Kind::Shared).peak.bytes, 11);
    }

    #[test]
    fn a_reset_leaves_the_peak_of_the_run() {
        let rows = DeviceRows::default();
        rows.add(Kind::Device, 10);
        rows.sub(Kind::Device, 10);
        rows.reset_peaks();
        rows.add(Kind::Device, 3);
        for seen in [rows.reading(Kind::Device), rows.reading_on_device()] {
            assert_eq!((seen.peak.bytes, seen.resettable_peak.bytes), (10, 3));
        }
    }
}
