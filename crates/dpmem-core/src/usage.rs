//! A map of what is in use that other processes can read while the program runs.
//!
//! The rows of the recording lie in the map themselves, so publishing them costs nothing: an event changes the same
//! words, in a file's page instead of on the heap. A reader copies the bytes and decodes the copy. What it sees of one
//! row may be a few nanoseconds apart; nothing is promised beyond that. What the pool has reserved lies there as well.
//!
//! Several recordings may exist at a time (an ended one can still be read), so the map has some slots of rows; a
//! recording that finds none free has its rows on the heap and is not seen from outside.

use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use crate::kind::{DeviceId, Kind, MAX_DEVICES};
use crate::pool::{Reserve, ReserveRow};
use crate::rows::{Amount, DeviceRows};

const SLOTS: usize = 4;
const NAME_WORDS: usize = 15;
/// Says what the file is, and which layout: changed whenever a field moves.
const MAGIC: u64 = u64::from_le_bytes(*b"dpmemU02");

/// The map. All zero is an empty one.
#[repr(C, align(64))]
pub struct UsageMap {
    magic: AtomicU64,
    pid: AtomicU64,
    /// When the process started, in the kernel's ticks: tells it from a later process of the same number.
    started: AtomicU64,
    /// Slot of the active recording plus one; 0 for none.
    active: AtomicU64,
    taken: [AtomicU64; SLOTS],
    names: [Name; MAX_DEVICES],
    rows: [[DeviceRows; MAX_DEVICES]; SLOTS],
    /// Whether requests go through the pool: 1, or 0.
    pooling: AtomicU64,
    reserves: [ReserveRow; MAX_DEVICES],
}

#[repr(C)]
struct Name {
    length: AtomicU64,
    text: [AtomicU64; NAME_WORDS],
}

/// Rows of a map, taken for one recording and given back when dropped.
pub struct LentRows {
    map: &'static UsageMap,
    slot: usize,
}

/// What a map said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The process that it is of.
    pub pid: u32,
    /// When that process started, in the kernel's ticks.
    pub started: u64,
    /// Whether a recording is active.
    pub recording: bool,
    /// Devices that have or had something in use.
    pub devices: Vec<DeviceUsage>,
    /// What the pool has reserved, of devices where it has or had something or a limit; none where it is off.
    pub reserves: Vec<DeviceReserve>,
}

/// What is in use on one device: now and at most, by kind in the order of [`Kind::ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUsage {
    /// Its name, if known.
    pub name: Option<String>,
    /// Now, and at most.
    pub kinds: [(Amount, Amount); Kind::ALL.len()],
}

/// What the pool has reserved on one device, or of host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceReserve {
    /// Its name, if known. Host memory has none.
    pub name: Option<String>,
    /// Whether it is host memory.
    pub is_host: bool,
    /// Now, and at most.
    pub reserve: Reserve,
}

impl UsageMap {
    /// Says whose map it is. Readers take it for one from now on.
    pub fn label(&self, pid: u32, started: u64) {
        self.pid.store(u64::from(pid), Relaxed);
        self.started.store(started, Relaxed);
        self.magic.store(MAGIC, Release);
    }

    /// Rows for a recording, all zero; `None` if all are taken.
    pub fn lend(&'static self) -> Option<LentRows> {
        let free = |taken: &AtomicU64| taken.compare_exchange(0, 1, AcqRel, Relaxed).is_ok();
        let slot = self.taken.iter().position(free)?;
        self.active.store(slot as u64 + 1, Release);
        Some(LentRows { map: self, slot })
    }

    /// No recording is active.
    pub fn retire(&self) {
        self.active.store(0, Release);
    }

    /// The rows of the process's pool.
    pub fn reserves(&self) -> &[ReserveRow; MAX_DEVICES] {
        &self.reserves
    }

    /// Says whether requests go through the pool.
    pub fn set_pooling(&self, on: bool) {
        self.pooling.store(u64::from(on), Release);
    }

    /// Names a device.
    pub fn name(&self, device: DeviceId, name: &str) {
        let mut end = name.len().min(NAME_WORDS * 8);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let entry = &self.names[device.index()];
        entry.length.store(0, Release);
        for (word, bytes) in entry.text.iter().zip(name.as_bytes()[..end].chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Relaxed);
        }
        entry.length.store(end as u64, Release);
    }

    /// What a copy of a map's bytes says; `None` if it is no map, or of another layout.
    pub fn decoded(copy: &[u8]) -> Option<Usage> {
        let number = |at: usize| Some(u64::from_le_bytes(copy.get(at..at + 8)?.try_into().ok()?));
        if copy.len() < size_of::<UsageMap>() || number(offset_of!(UsageMap, magic))? != MAGIC {
            return None;
        }
        let mut usage = Usage {
            pid: u32::try_from(number(offset_of!(UsageMap, pid))?).ok()?,
            started: number(offset_of!(UsageMap, started))?,
            ..Usage::default()
        };
        let name = |device: usize| {
            let name = offset_of!(UsageMap, names) + device * size_of::<Name>();
            let length = usize::try_from(number(name + offset_of!(Name, length))?).ok()?.min(NAME_WORDS * 8);
            let text = name + offset_of!(Name, text);
            let text = String::from_utf8_lossy(copy.get(text..text + length)?).into_owned();
            Some(text).filter(|text| !text.is_empty())
        };
        if number(offset_of!(UsageMap, pooling))? == 1 {
            for device in 0..MAX_DEVICES {
                let row = offset_of!(UsageMap, reserves) + device * size_of::<ReserveRow>();
                let reserve = ReserveRow::decoded(copy.get(row..row + size_of::<ReserveRow>())?)?;
                let is_host = device == DeviceId::NONE.index();
                if reserve != Reserve::default() {
                    usage.reserves.push(DeviceReserve { name: name(device), is_host, reserve });
                }
            }
        }
        let active = usize::try_from(number(offset_of!(UsageMap, active))?).ok()?;
        let Some(slot) = active.checked_sub(1).filter(|&slot| slot < SLOTS) else { return Some(usage) };
        usage.recording = true;
        for device in 0..MAX_DEVICES {
            let row = offset_of!(UsageMap, rows) + (slot * MAX_DEVICES + device) * size_of::<DeviceRows>();
            let kinds = DeviceRows::decoded(copy.get(row..row + size_of::<DeviceRows>())?)?;
            if kinds.iter().any(|(now, peak)| now.count > 0 || peak.count > 0) {
                usage.devices.push(DeviceUsage { name: name(device), kinds });
            }
        }
        Some(usage)
    }
}

impl LentRows {
    /// The rows, one for each device.
    pub fn rows(&self) -> &[DeviceRows] {
        &self.map.rows[self.slot]
    }
}

impl Drop for LentRows {
    fn drop(&mut self) {
        // A newer recording may be the active one by now.
        let _ = self.map.active.compare_exchange(self.slot as u64 + 1, 0, AcqRel, Relaxed);
        self.rows().iter().for_each(DeviceRows::clear);
        self.map.taken[self.slot].store(0, Release);
    }
}

impl DeviceUsage {
    /// What is in use of one kind, and was at most.
    pub fn of(&self, kind: Kind) -> (Amount, Amount) {
        self.kinds[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    fn map() -> &'static UsageMap {
        let zero = || AtomicU64::new(0);
        let rows = || std::array::from_fn(|_| DeviceRows::default());
        Box::leak(Box::new(UsageMap {
            magic: zero(),
            pid: zero(),
            started: zero(),
            active: zero(),
            taken: std::array::from_fn(|_| zero()),
            names: std::array::from_fn(|_| Name { length: zero(), text: std::array::from_fn(|_| zero()) }),
            rows: std::array::from_fn(|_| rows()),
            pooling: zero(),
            reserves: std::array::from_fn(|_| ReserveRow::new()),
        }))
    }

    /// The bytes of a map as a file would hold them, without looking at memory: field by field.
    fn bytes(map: &UsageMap) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<UsageMap>()];
        let mut put = |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        put(offset_of!(UsageMap, magic), map.magic.load(Relaxed));
        put(offset_of!(UsageMap, pid), map.pid.load(Relaxed));
        put(offset_of!(UsageMap, started), map.started.load(Relaxed));
        put(offset_of!(UsageMap, active), map.active.load(Relaxed));
        put(offset_of!(UsageMap, pooling), map.pooling.load(Relaxed));
        for (device, row) in map.reserves.iter().enumerate() {
            let at = offset_of!(UsageMap, reserves) + device * size_of::<ReserveRow>();
            row.put(|offset, word| put(at + offset, word));
        }
        for (device, name) in map.names.iter().enumerate() {
            let at = offset_of!(UsageMap, names) + device * size_of::<Name>();
            put(at + offset_of!(Name, length), name.length.load(Relaxed));
            for (index, word) in name.text.iter().enumerate() {
                put(at + offset_of!(Name, text) + 8 * index, word.load(Relaxed));
            }
        }
        bytes
    }

    #[test]
    fn names_and_owner_are_read_back() {
        let map = map();
        assert_eq!(UsageMap::decoded(&bytes(map)), None, "not labelled yet");
        map.label(42, 7);
        map.name(DeviceId::new(1), "opencl:cpu:0");
        map.name(DeviceId::new(2), &"ü".repeat(100));
        let rows = map.lend().expect("free");
        let seen = UsageMap::decoded(&bytes(map)).expect("a map");
        assert_eq!((seen.pid, seen.started, seen.recording, seen.devices.len()), (42, 7, true, 0));
        drop(rows);
        assert!(!UsageMap::decoded(&bytes(map)).expect("a map").recording);
    }

    #[test]
    fn what_a_pool_holds_is_read_back_while_it_is_on() {
        let map = map();
        map.label(1, 1);
        map.name(DeviceId::new(2), "level_zero:gpu:0");
        let pool = crate::pool::Pool::<crate::pool::tests::Fake>::with_rows(
            crate::pool::Policy::Direct,
            Some(map.reserves()),
        );
        let place = |device, kind| crate::pool::Place { owner: 0, handle: 0, device, kind, align: 0 };
        pool.put_limit(DeviceId::new(2), Some(0));
        pool.adopt(place(DeviceId::new(2), Kind::Device), 64, 100);
        pool.adopt(place(DeviceId::NONE, Kind::Host), 256, 8);
        pool.disown(64);
        let seen = || UsageMap::decoded(&bytes(map)).expect("a map").reserves;
        assert_eq!(seen(), [], "it is off");
        map.set_pooling(true);
        let reserve = |bytes, peak_bytes, limit_bytes| Reserve { bytes, peak_bytes, limit_bytes };
        let host = DeviceReserve { name: None, is_host: true, reserve: reserve(8, 8, None) };
        let name = Some("level_zero:gpu:0".to_string());
        assert_eq!(seen(), [host, DeviceReserve { name, is_host: false, reserve: reserve(0, 100, Some(0)) }]);
        assert_eq!(pool.reading(DeviceId::new(2)).peak_reserved_bytes, 100);
    }

    #[test]
    fn slots_come_back_clean() {
        let map = map();
        let lent: Vec<_> = (0..SLOTS).map(|_| map.lend().expect("free")).collect();
        assert!(map.lend().is_none());
        let rows = Rows::Lent(lent.into_iter().next().expect("one"));
        rows[1].add(Kind::Device, 10);
        assert_eq!(map.rows[0][1].reading(Kind::Device).current.bytes, 10);
        drop(rows);
        let again = map.lend().expect("the first is free again");
        assert_eq!(again.rows()[1].reading(Kind::Device), crate::rows::InUse::default());
    }

    #[test]
    fn what_is_no_map_is_none() {
        for length in [0, 8, size_of::<UsageMap>() - 1, size_of::<UsageMap>()] {
            assert_eq!(UsageMap::decoded(&vec![0xff; length]), None, "{length}");
        }
        let map = map();
        map.label(1, 1);
        let mut bytes = bytes(map);
        bytes[offset_of!(UsageMap, active)..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(!UsageMap::decoded(&bytes).expect("a map").recording, "no such slot");
    }
}
