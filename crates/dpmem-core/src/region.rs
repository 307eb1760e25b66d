//! Peaks of parts of a program (`with dpmem.track(...)`), any number of which may overlap.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

const SLOTS: usize = 64;

/// An open region: a place in the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Region(usize);

/// The peaks of up to 64 open regions.
pub struct RegionTable {
    taken: AtomicU64,
    open: AtomicU64,
    peaks: [AtomicU64; SLOTS],
}

impl Default for RegionTable {
    fn default() -> Self {
        RegionTable {
            taken: AtomicU64::new(0),
            open: AtomicU64::new(0),
            peaks: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl RegionTable {
    /// Opens a region at `current` bytes; `None` when all places are taken.
    pub fn open(&self, current: u64) -> Option<Region> {
        loop {
            let taken = self.taken.load(Relaxed);
            let index = (!taken).trailing_zeros() as usize;
            if index >= SLOTS {
                return None;
            }
            if self.taken.compare_exchange(taken, taken | 1 << index, Acquire, Relaxed).is_ok() {
                self.peaks[index].store(current, Relaxed);
                self.open.fetch_or(1 << index, Release);
                return Some(Region(index));
            }
        }
    }

    /// Enters the bytes in use after an allocation.
    pub fn record(&self, current: u64) {
        let mut open = self.open.load(Acquire);
        while open != 0 {
            let index = open.trailing_zeros() as usize;
            self.peaks[index].fetch_max(current, Relaxed);
            open &= open - 1;
        }
    }

    /// The peak of a region so far.
    pub fn peak(&self, region: &Region) -> u64 {
        self.peaks[region.0].load(Relaxed)
    }

    /// Closes a region and returns its peak.
    pub fn close(&self, region: Region) -> u64 {
        let peak = self.peak(&region);
        self.open.fetch_and(!(1 << region.0), Relaxed);
        self.taken.fetch_and(!(1 << region.0), Release);
        peak
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nested_regions_each_have_their_peak() {
        let table = RegionTable::default();
        let outer = table.open(5).expect("a place");
        table.record(50);
        let inner = table.open(10).expect("a place");
        table.record(20);
        assert_eq!(table.close(inner), 20);
        table.record(7);
        assert_eq!(table.close(outer), 50);
    }

    #[test]
    fn places_run_out_and_come_back() {
        let table = RegionTable::default();
        let mut open: Vec<_> = (0..SLOTS).map(|_| table.open(0).expect("a place")).collect();
        assert_eq!(table.open(0), None);
        table.close(open.remove(3));
        assert_eq!(table.open(1), Some(Region(3)));
    }
}
