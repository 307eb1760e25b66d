//! Kernel launches by stack: how often a line gives the device something to do.
//!
//! Counts may stand for several launches each, since whoever enters them may look at a part of them only.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::append::AppendTable;
use crate::stack::StackId;
use crate::sync::lock_std;

const SHARDS: usize = 16;

/// The launches of one stack.
struct Launches {
    stack: StackId,
    count: AtomicU64,
    first_ticks: AtomicU64,
    last_ticks: AtomicU64,
}

/// Launches of one stack: how many, and when the first and the last were entered, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaunchCounts {
    pub(crate) count: u64,
    pub(crate) first_ticks: u64,
    pub(crate) last_ticks: u64,
}

impl Launches {
    fn new(stack: StackId) -> Self {
        let (count, last_ticks) = (AtomicU64::new(0), AtomicU64::new(0));
        Launches { stack, count, first_ticks: AtomicU64::new(u64::MAX), last_ticks }
    }

    fn counts(&self) -> LaunchCounts {
        LaunchCounts {
            count: self.count.load(Ordering::Relaxed),
            first_ticks: self.first_ticks.load(Ordering::Relaxed),
            last_ticks: self.last_ticks.load(Ordering::Relaxed),
        }
    }
}

/// All of them. Stacks that find no room are not counted: the counts serve comparisons, not sums.
pub(crate) struct LaunchTable {
    launches: AppendTable<Launches>,
    by_stack: [Mutex<HashMap<StackId, usize, FxBuildHasher>>; SHARDS],
}

impl LaunchTable {
    pub(crate) fn new(capacity: usize) -> Self {
        LaunchTable {
            launches: AppendTable::new(capacity),
            by_stack: std::array::from_fn(|_| Mutex::new(FxHashMap::default())),
        }
    }

    pub(crate) fn add(&self, stack: StackId, count: u64, now: u64) {
        if let Some(launches) = self.index(stack).and_then(|index| self.launches.get(index)) {
            launches.count.fetch_add(count, Ordering::Relaxed);
            launches.last_ticks.fetch_max(now, Ordering::Relaxed);
            launches.first_ticks.fetch_min(now, Ordering::Relaxed);
        }
    }

    fn index(&self, stack: StackId) -> Option<usize> {
        let mut known = lock_std(&self.by_stack[(FxBuildHasher.hash_one(stack) >> 32) as usize % SHARDS]);
        if let Some(&index) = known.get(&stack) {
            return Some(index);
        }
        let index = self.launches.push(Launches::new(stack)).ok()?;
        known.insert(stack, index);
        Some(index)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, LaunchCounts)> {
        self.launches.iter().map(|(_, launches)| (launches.stack, launches.counts()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stack::Origin;

    #[test]
    fn launches_add_up_by_stack_and_a_full_table_does_no_harm() {
        let table = LaunchTable::new(1);
        let (first, second) = (StackId::origin(Origin::RuntimeThread), StackId::origin(Origin::NotRecorded));
        table.add(first, 1, 5);
        table.add(first, 16, 9);
        table.add(second, 1, 7);
        let counts = LaunchCounts { count: 17, first_ticks: 5, last_ticks: 9 };
        assert_eq!(table.iter().collect::<Vec<_>>(), [(first, counts)]);
    }
}
