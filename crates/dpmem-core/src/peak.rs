//! The clock of peaks: current bytes, the largest they ever were, and a number for each new peak.
//!
//! # Protocol
//! All three live in one 128-bit word, so every event takes one place in one total order and learns there
//!
//! * the *epoch*: how many times a new peak had been set, this event included, and
//! * whether it set the peak itself.
//!
//! An event belongs to the composition of peak number `p` exactly if it came no later than the event that set it. So
//! its first such peak is its own epoch if it set the peak, and the next one otherwise. A site needs no more than that
//! (see `site::Composition`) to know, at any later time and in whatever order its events reach it, what it held at the
//! last peak; nothing is stored per event, and no lock spans two sites. A restart takes its place in the same order, so
//! the sites need not be told of it either.

use std::sync::atomic::Ordering;

use crate::sync::AtomicU128;

const BYTES_BITS: u32 = 48;
const BYTES_MASK: u128 = (1 << BYTES_BITS) - 1;

/// What an event learned from the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Bytes in use right after the event.
    pub current: u64,
    /// Number of the newest peak, this event included.
    pub epoch: u32,
    /// Whether this event set that peak.
    pub set_peak: bool,
}

/// A consistent reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeakReading {
    /// Bytes in use.
    pub current: u64,
    /// The largest bytes in use so far, or since the restart.
    pub peak: u64,
    /// Number of that peak; 0 before the first.
    pub epoch: u32,
}

/// Current and peak bytes, with a number for each new peak. Sums up to 2^48 bytes.
pub struct PeakClock {
    state: AtomicU128,
}

impl Default for PeakClock {
    fn default() -> Self {
        PeakClock { state: AtomicU128::new(0) }
    }
}

impl PeakClock {
    /// Adds an allocation.
    pub fn add(&self, bytes: u64) -> Tick {
        self.advance(|current| current.saturating_add(bytes))
    }

    /// Takes a freed block out.
    pub fn sub(&self, bytes: u64) -> Tick {
        self.advance(|current| current.saturating_sub(bytes))
    }

    /// Starts a new peak from what is in use now: an event of no site that sets the peak without changing anything.
    pub fn restart(&self) {
        let mut word = self.state.load(Ordering::Relaxed);
        loop {
            let old = unpack(word);
            let new = PeakReading { peak: old.current, epoch: old.epoch.wrapping_add(1), ..old };
            match self.state.compare_exchange_weak(word, pack(new), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// Reads all three at one moment.
    pub fn read(&self) -> PeakReading {
        unpack(self.state.load(Ordering::Acquire))
    }

    fn advance(&self, next: impl Fn(u64) -> u64) -> Tick {
        let mut word = self.state.load(Ordering::Relaxed);
        loop {
            let old = unpack(word);
            let current = next(old.current).min(BYTES_MASK as u64);
            let set_peak = current > old.peak;
            let new = PeakReading {
                current,
                peak: old.peak.max(current),
                epoch: old.epoch.wrapping_add(u32::from(set_peak)),
            };
            match self.state.compare_exchange_weak(word, pack(new), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Tick { current, epoch: new.epoch, set_peak },
                Err(seen) => word = seen,
            }
        }
    }
}

fn pack(reading: PeakReading) -> u128 {
    u128::from(reading.current)
        | u128::from(reading.peak) << BYTES_BITS
        | u128::from(reading.epoch) << (2 * BYTES_BITS)
}

fn unpack(word: u128) -> PeakReading {
    PeakReading {
        current: (word & BYTES_MASK) as u64,
        peak: (word >> BYTES_BITS & BYTES_MASK) as u64,
        epoch: (word >> (2 * BYTES_BITS)) as u32,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_new_high_is_a_new_epoch() {
        let clock = PeakClock::default();
        assert_eq!(clock.add(10), Tick { current: 10, epoch: 1, set_peak: true });
        assert_eq!(clock.sub(4), Tick { current: 6, epoch: 1, set_peak: false });
        assert_eq!(clock.add(4), Tick { current: 10, epoch: 1, set_peak: false });
        assert_eq!(clock.add(1), Tick { current: 11, epoch: 2, set_peak: true });
        assert_eq!(clock.read(), PeakReading { current: 11, peak: 11, epoch: 2 });
    }

    #[test]
    fn a_restart_is_a_new_epoch_from_what_is_in_use() {
        let clock = PeakClock::default();
        clock.add(10);
        clock.sub(4);
        clock.restart();
        assert_eq!(clock.read(), PeakReading { current: 6, peak: 6, epoch: 2 });
        assert_eq!(clock.add(1), Tick { current: 7, epoch: 3, set_peak: true });
    }

    #[test]
    fn large_sums_fit() {
        let clock = PeakClock::default();
        clock.add(1 << 46);
        assert_eq!(clock.add(1 << 46).current, 1 << 47);
        assert_eq!(clock.read().peak, 1 << 47);
    }
}
