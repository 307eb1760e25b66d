//! Copies between host and device, by direction and stack.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::append::AppendTable;
use crate::content::{Contents, Wanted};
use crate::kind::Direction;
use crate::stack::{Origin, StackId};
use crate::sync::lock_std;

/// A direction and a stack, as an index into the ledger's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransferId(u32);

/// The counters of one direction at one stack.
pub(crate) struct Transfer {
    pub(crate) direction: Direction,
    pub(crate) stack: StackId,
    count: AtomicU64,
    bytes: AtomicU64,
    largest: AtomicU64,
    first_ticks: AtomicU64,
    last_ticks: AtomicU64,
    contents: Mutex<Contents>,
    rows: Mutex<Rows>,
}

/// Whether copies come from one place after the other, as the rows of an array do.
#[derive(Debug, Default)]
struct Rows {
    last: usize,
    step: usize,
    count: u64,
}

/// How often, how much and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Number of copies.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest_bytes: u64,
    /// Copies of data that had been copied at this stack before, as far as contents were compared.
    pub repeats: u64,
    /// Copies from host memory as far behind the one before as that was behind its own.
    pub in_step: u64,
    /// When the first was made, in ticks.
    pub first_ticks: u64,
    /// When the last was made, in ticks.
    pub last_ticks: u64,
}

impl Transfer {
    fn new(direction: Direction, stack: StackId) -> Self {
        Transfer {
            direction,
            stack,
            count: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            largest: AtomicU64::new(0),
            first_ticks: AtomicU64::new(u64::MAX),
            last_ticks: AtomicU64::new(0),
            contents: Mutex::default(),
            rows: Mutex::default(),
        }
    }

    pub(crate) fn add(&self, bytes: u64, now: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.largest.fetch_max(bytes, Ordering::Relaxed);
        self.first_ticks.fetch_min(now, Ordering::Relaxed);
        self.last_ticks.fetch_max(now, Ordering::Relaxed);
    }

    /// Notes where in host memory a copy came from.
    pub(crate) fn came_from(&self, address: usize) {
        let mut rows = lock_std(&self.rows);
        let step = address.wrapping_sub(rows.last);
        rows.count += u64::from(step == rows.step && step != 0);
        (rows.last, rows.step) = (address, step);
    }

    /// Compares what was copied with what was copied before. No lock is held while `whole` looks at all of it.
    pub(crate) fn compare(&self, bytes: u64, sample: u64, whole: impl FnOnce() -> Option<u64>) {
        let wanted = lock_std(&self.contents).sampled(bytes, sample);
        if wanted == Wanted::Whole
            && let Some(whole) = whole()
        {
            lock_std(&self.contents).hashed(bytes, sample, whole);
        }
    }

    pub(crate) fn counts(&self) -> TransferCounts {
        TransferCounts {
            count: self.count.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            largest_bytes: self.largest.load(Ordering::Relaxed),
            repeats: lock_std(&self.contents).repeats(),
            in_step: lock_std(&self.rows).count,
            first_ticks: self.first_ticks.load(Ordering::Relaxed),
            last_ticks: self.last_ticks.load(Ordering::Relaxed),
        }
    }
}

const SHARDS: usize = 16;

type Known = HashMap<(Direction, StackId), TransferId, FxBuildHasher>;

/// All of them; the last three are the overflow of each direction.
pub(crate) struct TransferTable {
    transfers: AppendTable<Transfer>,
    by_key: [Mutex<Known>; SHARDS],
    overflow: [Transfer; 3],
}

impl TransferTable {
    pub(crate) fn new(capacity: usize) -> Self {
        let rest = |direction| Transfer::new(direction, StackId::origin(Origin::OtherStacks));
        TransferTable {
            transfers: AppendTable::new(capacity),
            by_key: std::array::from_fn(|_| Mutex::new(FxHashMap::default())),
            overflow: [
                rest(Direction::HostToDevice),
                rest(Direction::DeviceToHost),
                rest(Direction::DeviceToDevice),
            ],
        }
    }

    pub(crate) fn intern(&self, direction: Direction, stack: StackId) -> TransferId {
        let shard = FxBuildHasher.hash_one((direction, stack)) >> 32;
        let mut known = lock_std(&self.by_key[shard as usize % SHARDS]);
        if let Some(&id) = known.get(&(direction, stack)) {
            return id;
        }
        match self.transfers.push(Transfer::new(direction, stack)) {
            Ok(index) => {
                let id = TransferId(index as u32);
                known.insert((direction, stack), id);
                id
            }
            Err(_) => TransferId(u32::MAX - direction as u32),
        }
    }

    pub(crate) fn get(&self, id: TransferId) -> &Transfer {
        self.transfers.get(id.0 as usize).unwrap_or_else(|| {
            let direction = (u32::MAX - id.0) as usize;
            &self.overflow[direction.min(self.overflow.len() - 1)]
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Transfer> {
        let used = |transfer: &&Transfer| transfer.count.load(Ordering::Relaxed) > 0;
        self.transfers.iter().map(|(_, transfer)| transfer).chain(&self.overflow).filter(used)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_keeps_directions_apart() {
        let table = TransferTable::new(1);
        let stack = StackId::origin(Origin::RuntimeThread);
        let first = table.intern(Direction::HostToDevice, stack);
        let back = table.intern(Direction::DeviceToHost, stack);
        table.get(first).add(3, 1);
        table.get(back).add(4, 1);
        table.get(back).add(4, 1);
        let mut seen: Vec<_> =
            table.iter().map(|t| (t.direction, (t.counts().count, t.counts().bytes))).collect();
        seen.sort();
        assert_eq!(seen, [(Direction::HostToDevice, (1, 3)), (Direction::DeviceToHost, (2, 8))]);
    }
}
