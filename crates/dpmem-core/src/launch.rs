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
}

/// All of them. Stacks that find no room are not counted: the counts serve comparisons, not sums.
pub(crate) struct LaunchTable {
    launches: AppendTable<Launches>,
    by_stack: [Mutex<HashMap<StackId, usize, FxBuildHasher>>; SHARDS],
    last_ticks: AtomicU64,
}

impl LaunchTable {
    pub(crate) fn new(capacity: usize) -> Self {
        LaunchTable {
            launches: AppendTable::new(capacity),
            by_stack: std::array::from_fn(|_| Mutex::new(FxHashMap::default())),
            last_ticks: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, stack: StackId, count: u64, now: u64) {
        self.last_ticks.fetch_max(now, Ordering::Relaxed);
        if let Some(launches) = self.index(stack).and_then(|index| self.launches.get(index)) {
            launches.count.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn index(&self, stack: StackId) -> Option<usize> {
        let mut known = lock_std(&self.by_stack[(FxBuildHasher.hash_one(stack) >> 32) as usize % SHARDS]);
        if let Some(&index) = known.get(&stack) {
            return Some(index);
        }
        let index = self.launches.push(Launches { stack, count: AtomicU64::new(0) }).ok()?;
        known.insert(stack, index);
        Some(index)
    }

    /// When the newest was entered.
    pub(crate) fn last_ticks(&self) -> u64 {
        self.last_ticks.load(Ordering::Relaxed)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, u64)> {
        self.launches.iter().map(|(_, launches)| (launches.stack, launches.count.load(Ordering::Relaxed)))
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
        assert_eq!(table.iter().collect::<Vec<_>>(), [(first, 17)]);
        assert_eq!(table.last_ticks(), 9);
    }
}
