//! The counters of one device and kind.
//!
//! `current` is changed by one atomic addition per event, which gives the events of a row one order; the peak is the
//! largest result of those additions, so it is exact however many threads allocate. Reading takes no lock: while other
//! threads allocate, two counters may be one event apart.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// One device and kind.
#[derive(Default)]
pub struct Row {
    current_bytes: AtomicI64,
    current_count: AtomicI64,
    peak_bytes: AtomicI64,
    peak_count: AtomicI64,
    resettable_peak_bytes: AtomicI64,
    resettable_peak_count: AtomicI64,
    allocated_bytes: AtomicU64,
    alloc_count: AtomicU64,
    freed_bytes: AtomicU64,
    free_count: AtomicU64,
    failed_count: AtomicU64,
}

/// What a row says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowReading {
    /// Bytes in use.
    pub current_bytes: u64,
    /// Blocks in use.
    pub current_count: u64,
    /// The largest `current_bytes` so far.
    pub peak_bytes: u64,
    /// The largest `current_count` so far.
    pub peak_count: u64,
    /// The largest `current_bytes` since [`Row::reset_peak`].
    pub resettable_peak_bytes: u64,
    /// The largest `current_count` since [`Row::reset_peak`].
    pub resettable_peak_count: u64,
    /// Bytes of all allocations.
    pub allocated_bytes: u64,
    /// Number of allocations.
    pub alloc_count: u64,
    /// Bytes of all frees of known blocks.
    pub freed_bytes: u64,
    /// Number of frees of known blocks.
    pub free_count: u64,
    /// Allocations that the runtime refused.
    pub failed_count: u64,
}

impl Row {
    /// An allocation of `bytes`.
    pub fn allocated(&self, bytes: u64) {
        self.allocated_bytes.fetch_add(bytes, Relaxed);
        self.alloc_count.fetch_add(1, Relaxed);
        self.adopted(bytes);
    }

    /// A block that existed before recording started.
    pub fn adopted(&self, bytes: u64) {
        let bytes = self.current_bytes.fetch_add(bytes as i64, Relaxed) + bytes as i64;
        let count = self.current_count.fetch_add(1, Relaxed) + 1;
        raise(&self.peak_bytes, bytes);
        raise(&self.resettable_peak_bytes, bytes);
        raise(&self.peak_count, count);
        raise(&self.resettable_peak_count, count);
    }

    /// A free of a known block of `bytes`.
    pub fn freed(&self, bytes: u64) {
        self.current_bytes.fetch_sub(bytes as i64, Relaxed);
        self.current_count.fetch_sub(1, Relaxed);
        self.freed_bytes.fetch_add(bytes, Relaxed);
        self.free_count.fetch_add(1, Relaxed);
    }

    /// Takes a free back that the runtime refused.
    pub fn restored(&self, bytes: u64) {
        self.freed_bytes.fetch_sub(bytes, Relaxed);
        self.free_count.fetch_sub(1, Relaxed);
        self.adopted(bytes);
    }

    /// An allocation that the runtime refused.
    pub fn failed(&self) {
        self.failed_count.fetch_add(1, Relaxed);
    }

    /// Starts the resettable peaks anew from what is in use.
    pub fn reset_peak(&self) {
        self.resettable_peak_bytes.store(self.current_bytes.load(Relaxed), Relaxed);
        self.resettable_peak_count.store(self.current_count.load(Relaxed), Relaxed);
    }

    /// Reads every counter.
    pub fn reading(&self) -> RowReading {
        let positive = |counter: &AtomicI64| counter.load(Relaxed).max(0) as u64;
        RowReading {
            current_bytes: positive(&self.current_bytes),
            current_count: positive(&self.current_count),
            peak_bytes: positive(&self.peak_bytes),
            peak_count: positive(&self.peak_count),
            resettable_peak_bytes: positive(&self.resettable_peak_bytes),
            resettable_peak_count: positive(&self.resettable_peak_count),
            allocated_bytes: self.allocated_bytes.load(Relaxed),
            alloc_count: self.alloc_count.load(Relaxed),
            freed_bytes: self.freed_bytes.load(Relaxed),
            free_count: self.free_count.load(Relaxed),
            failed_count: self.failed_count.load(Relaxed),
        }
    }
}

/// `fetch_max`, but without a write when there is nothing to raise.
fn raise(peak: &AtomicI64, value: i64) {
    if value > peak.load(Relaxed) {
        peak.fetch_max(value, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_and_keeps_its_peak() {
        let row = Row::default();
        row.allocated(10);
        row.allocated(5);
        row.freed(10);
        row.failed();
        row.adopted(1);
        let seen = row.reading();
        assert_eq!((seen.current_bytes, seen.current_count), (6, 2));
        assert_eq!((seen.peak_bytes, seen.peak_count), (15, 2));
        assert_eq!((seen.allocated_bytes, seen.alloc_count), (15, 2));
        assert_eq!((seen.freed_bytes, seen.free_count, seen.failed_count), (10, 1, 1));
    }

    #[test]
    fn a_reset_leaves_the_peak_of_the_run() {
        let row = Row::default();
        row.allocated(10);
        row.freed(10);
        row.reset_peak();
        row.allocated(3);
        assert_eq!((row.reading().peak_bytes, row.reading().resettable_peak_bytes), (10, 3));
    }

    #[test]
    fn a_refused_free_changes_nothing() {
        let row = Row::default();
        row.allocated(10);
        let before = row.reading();
        row.freed(10);
        row.restored(10);
        assert_eq!(row.reading(), before);
    }
}
