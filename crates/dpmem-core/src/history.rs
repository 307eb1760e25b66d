//! Bytes in use over time, in a fixed number of slots.
//!
//! A slot holds the largest and the last value of its interval. When time runs past the last slot, neighbours are
//! merged and the interval doubles, so memory stays the same however long a program runs.

use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SLOTS: usize = 1024;
/// A slot without an event.
const EMPTY: u64 = u64::MAX;

struct Slot {
    largest: AtomicU64,
    last: AtomicU64,
}

struct Scale {
    shift: u32,
    slots: Box<[Slot]>,
}

/// Current bytes over time.
pub struct History {
    origin: u64,
    scale: RwLock<Scale>,
}

/// One interval of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistorySample {
    /// Start of the interval, in ticks since the ledger's origin.
    pub start_ticks: u64,
    /// The largest number of bytes in use during it.
    pub largest_bytes: u64,
    /// Bytes in use at its end.
    pub last_bytes: u64,
}

impl History {
    /// A history that starts at `origin` with intervals of 2^`shift` ticks.
    pub fn new(origin: u64, shift: u32) -> Self {
        let empty = |_| Slot { largest: AtomicU64::new(0), last: AtomicU64::new(EMPTY) };
        History { origin, scale: RwLock::new(Scale { shift, slots: (0..SLOTS).map(empty).collect() }) }
    }

    /// Enters the bytes in use at `now`.
    pub fn record(&self, now: u64, current: u64) {
        let elapsed = now.saturating_sub(self.origin);
        loop {
            {
                let scale = self.scale.read().unwrap_or_else(std::sync::PoisonError::into_inner);
                if let Some(slot) = scale.slots.get((elapsed >> scale.shift) as usize) {
                    if current > slot.largest.load(Relaxed) {
                        slot.largest.fetch_max(current, Relaxed);
                    }
                    slot.last.store(current, Relaxed);
                    return;
                }
            }
            self.widen(elapsed);
        }
    }

    /// The intervals up to `now`, and the ticks in each. A quiet interval repeats what was in use before it.
    pub fn samples(&self, now: u64) -> (u64, Vec<HistorySample>) {
        let scale = self.scale.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let interval = 1u64 << scale.shift;
        let used = (now.saturating_sub(self.origin) / interval) as usize + 1;
        let mut in_use = 0;
        let samples = scale.slots.iter().take(used).enumerate().map(|(index, slot)| {
            let last = slot.last.load(Relaxed);
            let largest = slot.largest.load(Relaxed).max(in_use);
            if last != EMPTY {
                in_use = last;
            }
            let start_ticks = index as u64 * interval;
            HistorySample { start_ticks, largest_bytes: largest, last_bytes: in_use }
        });
        (interval, samples.collect())
    }

    fn widen(&self, elapsed: u64) {
        let mut scale = self.scale.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        while (elapsed >> scale.shift) as usize >= SLOTS {
            for index in 0..SLOTS {
                let (largest, last) = if index < SLOTS / 2 {
                    merged(&scale.slots[2 * index], &scale.slots[2 * index + 1])
                } else {
                    (0, EMPTY)
                };
                scale.slots[index].largest.store(largest, Relaxed);
                scale.slots[index].last.store(last, Relaxed);
            }
            scale.shift += 1;
        }
    }
}

fn merged(first: &Slot, second: &Slot) -> (u64, u64) {
    let last = match second.last.load(Relaxed) {
        EMPTY => first.last.load(Relaxed),
        last => last,
    };
    (first.largest.load(Relaxed).max(second.largest.load(Relaxed)), last)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn quiet_intervals_repeat_the_last_value() {
        let history = History::new(100, 4);
        history.record(100, 7);
        history.record(101, 5);
        history.record(100 + 3 * 16, 9);
        let (interval, samples) = history.samples(100 + 3 * 16);
        assert_eq!(interval, 16);
        let largest: Vec<_> = samples.iter().map(|s| s.largest_bytes).collect();
        assert_eq!(largest, [7, 5, 5, 9]);
        assert_eq!(samples[2].last_bytes, 5);
    }

    #[test]
    fn widening_keeps_peaks_and_memory() {
        let history = History::new(0, 0);
        for now in 0..100_000u64 {
            history.record(now, if now == 5 { 1_000_000 } else { now });
        }
        let (interval, samples) = history.samples(99_999);
        assert!(samples.len() <= SLOTS && interval >= 64);
        assert_eq!(samples[0].largest_bytes, 1_000_000, "a peak survives merging");
        assert_eq!(samples.last().map(|s| s.last_bytes), Some(99_999));
    }
}
