//! Bytes in use over time, in a fixed number of slots.
//!
//! A slot holds the largest and the last value of its interval. When time runs past the last slot, neighbours are
//! merged and the interval doubles, so memory stays the same however long a program runs.
//!
//! # Protocol
//! Recording takes no lock. Each value carries the scale it was written at in its top byte, and scales only grow; so a
//! thread that was held up while the scale changed can't put a value into the wrong place: its `largest` loses against
//! every newer one, and its `last` is not taken for one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::sync::lock_std as lock;

const SLOTS: usize = 1024;
const TAG_SHIFT: u32 = 56;
const BYTES_MASK: u64 = (1 << TAG_SHIFT) - 1;

#[derive(Default)]
struct Slot {
    largest: AtomicU64,
    last: AtomicU64,
}

/// Current bytes over time.
pub struct History {
    origin: u64,
    /// Ticks of an interval, as a power of two.
    scale: AtomicU32,
    slots: Box<[Slot]>,
    widening: Mutex<()>,
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
    /// A history that starts at `origin` with intervals of 2^`scale` ticks, `scale` from 1 to 63.
    pub fn new(origin: u64, scale: u32) -> Self {
        let scale = AtomicU32::new(scale.clamp(1, 63));
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        History { origin, scale, slots, widening: Mutex::new(()) }
    }

    /// Enters the bytes in use at `now`.
    pub fn record(&self, now: u64, current: u64) {
        let elapsed = now.saturating_sub(self.origin);
        loop {
            let scale = self.scale.load(Relaxed);
            if let Some(slot) = self.slots.get((elapsed >> scale) as usize) {
                let value = tagged(scale, current);
                if value > slot.largest.load(Relaxed) {
                    slot.largest.fetch_max(value, Relaxed);
                }
                slot.last.store(value, Relaxed);
                return;
            }
            self.widen(elapsed);
        }
    }

    /// The intervals up to `now`, and the ticks in each. A quiet interval repeats what was in use before it.
    pub fn samples(&self, now: u64) -> (u64, Vec<HistorySample>) {
        let _no_widening = lock(&self.widening);
        let scale = self.scale.load(Relaxed);
        let interval = 1u64 << scale;
        let used = (now.saturating_sub(self.origin) >> scale) as usize + 1;
        let mut in_use = 0;
        let samples = self.slots.iter().take(used).enumerate().map(|(index, slot)| {
            let largest = untagged(scale, &slot.largest).unwrap_or(0).max(in_use);
            in_use = untagged(scale, &slot.last).unwrap_or(in_use);
            let start_ticks = index as u64 * interval;
            HistorySample { start_ticks, largest_bytes: largest, last_bytes: in_use }
        });
        (interval, samples.collect())
    }

    fn widen(&self, elapsed: u64) {
        let _widening = lock(&self.widening);
        let mut scale = self.scale.load(Relaxed);
        while (elapsed >> scale) as usize >= SLOTS {
            for index in 0..SLOTS {
                let pair = self.slots.get(2 * index).zip(self.slots.get(2 * index + 1));
                let (largest, last) = pair.map_or((None, None), |(first, second)| {
                    let largest = untagged(scale, &first.largest).max(untagged(scale, &second.largest));
                    (largest, untagged(scale, &second.last).or(untagged(scale, &first.last)))
                });
                let slot = &self.slots[index];
                slot.largest.store(largest.map_or(0, |bytes| tagged(scale + 1, bytes)), Relaxed);
                slot.last.store(last.map_or(0, |bytes| tagged(scale + 1, bytes)), Relaxed);
            }
            scale += 1;
            self.scale.store(scale, Relaxed);
        }
    }
}

fn tagged(scale: u32, bytes: u64) -> u64 {
    u64::from(scale) << TAG_SHIFT | bytes.min(BYTES_MASK)
}

/// The bytes in a slot, if they were written at this scale.
fn untagged(scale: u32, value: &AtomicU64) -> Option<u64> {
    let value = value.load(Relaxed);
    (value >> TAG_SHIFT == u64::from(scale)).then_some(value & BYTES_MASK)
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
        let history = History::new(0, 1);
        for now in 0..100_000u64 {
            history.record(now, if now == 5 { 1_000_000 } else { now });
        }
        let (interval, samples) = history.samples(99_999);
        assert!(samples.len() <= SLOTS && interval >= 64);
        assert_eq!(samples[0].largest_bytes, 1_000_000, "a peak survives merging");
        assert_eq!(samples.last().map(|s| s.last_bytes), Some(99_999));
    }

    #[test]
    fn a_value_of_an_older_scale_counts_for_nothing() {
        let history = History::new(0, 1);
        history.record(10, 5);
        history.record(1 << 30, 6);
        let scale = history.scale.load(Relaxed);
        let held_up = tagged(scale - 1, 1_000);
        history.slots[700].largest.fetch_max(held_up, Relaxed);
        history.slots[700].last.store(held_up, Relaxed);
        assert!(history.samples(1 << 30).1.iter().all(|sample| sample.largest_bytes <= 6));
    }

    #[test]
    fn zero_bytes_are_a_value() {
        let history = History::new(0, 4);
        history.record(0, 9);
        history.record(16, 0);
        assert_eq!(history.samples(40).1[2].largest_bytes, 0);
    }
}
