//! What is in use on one device, of one kind.
//!
//! Bytes and blocks live in one 128-bit word that every event changes in one step. That gives the events of a row one
//! order, and the peaks are the largest results of those steps, so they are exact however many threads allocate. Totals
//! (allocated, freed, refused) are not kept here: they are the sums of the sites'.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::sync::AtomicU128;

/// Bytes and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub count: u64,
}

/// One device and kind.
pub struct Row {
    current: AtomicU128,
    peak: Peak,
    resettable_peak: Peak,
}

#[derive(Default)]
struct Peak {
    bytes: AtomicU64,
    count: AtomicU64,
}

/// What a row says of what is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// In use.
    pub current: Amount,
    /// The most bytes, and the most blocks, that were in use at a time.
    pub peak: Amount,
    /// The same since [`Row::reset_peak`].
    pub resettable_peak: Amount,
}

impl Default for Row {
    fn default() -> Self {
        Row { current: AtomicU128::new(0), peak: Peak::default(), resettable_peak: Peak::default() }
    }
}

impl Row {
    /// Takes a block in.
    pub fn add(&self, bytes: u64) {
        let current = self.change(|amount| Amount { bytes: amount.bytes + bytes, count: amount.count + 1 });
        self.peak.raise(current);
        self.resettable_peak.raise(current);
    }

    /// Takes a block out.
    pub fn sub(&self, bytes: u64) {
        self.change(|amount| Amount {
            bytes: amount.bytes.saturating_sub(bytes),
            count: amount.count.saturating_sub(1),
        });
    }

    /// Starts the resettable peaks anew from what is in use.
    pub fn reset_peak(&self) {
        let current = unpack(self.current.load(Relaxed));
        self.resettable_peak.bytes.store(current.bytes, Relaxed);
        self.resettable_peak.count.store(current.count, Relaxed);
    }

    /// Reads what is in use and the peaks.
    pub fn reading(&self) -> InUse {
        InUse {
            current: unpack(self.current.load(Relaxed)),
            peak: self.peak.reading(),
            resettable_peak: self.resettable_peak.reading(),
        }
    }

    fn change(&self, next: impl Fn(Amount) -> Amount) -> Amount {
        let mut word = self.current.load(Relaxed);
        loop {
            let amount = next(unpack(word));
            match self.current.compare_exchange_weak(word, pack(amount), Relaxed, Relaxed) {
                Ok(_) => return amount,
                Err(seen) => word = seen,
            }
        }
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

    fn reading(&self) -> Amount {
        Amount { bytes: self.bytes.load(Relaxed), count: self.count.load(Relaxed) }
    }
}

fn pack(amount: Amount) -> u128 {
    u128::from(amount.bytes) | u128::from(amount.count) << 64
}

fn unpack(word: u128) -> Amount {
    Amount { bytes: word as u64, count: (word >> 64) as u64 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_what_is_in_use_and_its_peaks() {
        let row = Row::default();
        row.add(10);
        row.add(5);
        row.sub(10);
        row.add(1);
        let seen = row.reading();
        assert_eq!(seen.current, Amount { bytes: 6, count: 2 });
        assert_eq!(seen.peak, Amount { bytes: 15, count: 2 });
    }

    #[test]
    fn a_reset_leaves_the_peak_of_the_run() {
        let row = Row::default();
        row.add(10);
        row.sub(10);
        row.reset_peak();
        row.add(3);
        assert_eq!((row.reading().peak.bytes, row.reading().resettable_peak.bytes), (10, 3));
    }

    #[test]
    fn bytes_and_blocks_do_not_touch_each_other() {
        let row = Row::default();
        row.add(u64::MAX - 1);
        row.add(1);
        assert_eq!(row.reading().current, Amount { bytes: u64::MAX, count: 2 });
        row.sub(u64::MAX);
        row.sub(5);
        assert_eq!(row.reading().current, Amount::default());
    }
}
