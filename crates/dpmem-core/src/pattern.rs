//! How the blocks of a site come and go: what tells a loop that allocates from one that grows, and both from a one-off.
//!
//! Everything is a handful of counters, updated under the site's own lock; [`Growth`] is made at a site's
//! [`GROWTH_FROM`]th allocation only. Memory grows with sites, never with events.

use crate::site::FreedBy;

/// Allocations of one site from which on its growth is sampled.
const GROWTH_FROM: u64 = 8;
/// Samples of a site; when they are full, every second one goes and the distance doubles.
const GROWTH_SAMPLES: usize = 48;

/// How blocks of one site came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// The most blocks that were live at once.
    pub most_count: u64,
    /// Blocks that were live at each allocation, the new one included, summed up.
    pub live_sum: u64,
    /// Size of the newest block.
    pub last_bytes: u64,
    /// Allocations of the same size as the one before.
    pub repeats: u64,
    /// Allocations that were larger than the one before.
    pub rises: u64,
    /// Frees on threads that ran no Python: the block had no Python owner any more and waited for queued work.
    pub late_free_count: u64,
    /// Their bytes.
    pub late_freed_bytes: u64,
    /// Frees within the line that had allocated the block; only the first 16 frees of a site are looked at.
    pub same_line_free_count: u64,
    /// Frees that had been made when the newest block was allocated.
    pub freed_before_newest: u64,
    /// When the oldest block was allocated, in ticks.
    pub first_ticks: u64,
    /// When the newest block was allocated, in ticks.
    pub last_ticks: u64,
}

impl Pattern {
    pub(crate) fn allocated(&mut self, bytes: u64, live_count: u64, free_count: u64, now: u64) {
        if self.first_ticks == 0 {
            self.first_ticks = now;
        } else {
            self.repeats += u64::from(bytes == self.last_bytes);
            self.rises += u64::from(bytes > self.last_bytes);
        }
        self.last_ticks = self.last_ticks.max(now);
        self.last_bytes = bytes;
        self.most_count = self.most_count.max(live_count);
        self.live_sum += live_count;
        self.freed_before_newest = free_count;
    }

    pub(crate) fn freed(&mut self, bytes: u64, by: FreedBy) {
        match by {
            FreedBy::Program => {}
            FreedBy::SameLine => self.same_line_free_count += 1,
            FreedBy::Runtime => {
                self.late_free_count += 1;
                self.late_freed_bytes += bytes;
            }
        }
    }
}

/// Bytes that a site held at some of its allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthSample {
    /// When, in ticks.
    pub ticks: u64,
    /// Bytes live then.
    pub live_bytes: u64,
}

/// Samples of what a site held, evenly spread over its allocations.
#[derive(Debug)]
pub(crate) struct Growth {
    samples: Vec<GrowthSample>,
    stride: u64,
    until_next: u64,
}

impl Growth {
    /// Enters an allocation, the site's `count`th; makes the samples when it is time.
    pub(crate) fn enter(growth: &mut Option<Box<Growth>>, count: u64, sample: GrowthSample) {
        match growth {
            Some(growth) => growth.take(sample),
            None if count >= GROWTH_FROM => {
                let mut samples = Vec::with_capacity(GROWTH_SAMPLES);
                samples.push(sample);
                *growth = Some(Box::new(Growth { samples, stride: 1, until_next: 1 }));
            }
            None => {}
        }
    }

    fn take(&mut self, sample: GrowthSample) {
        self.until_next -= 1;
        if self.until_next > 0 {
            return;
        }
        if self.samples.len() == GROWTH_SAMPLES {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
        self.samples.push(sample);
        self.until_next = self.stride;
    }

    pub(crate) fn samples(growth: Option<&Growth>) -> Vec<GrowthSample> {
        growth.map(|growth| growth.samples.clone()).unwrap_or_default()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn repeats_and_rises_are_told_apart() {
        let mut pattern = Pattern::default();
        for (now, bytes) in [8, 8, 8, 16, 24, 24, 1].into_iter().enumerate() {
            pattern.allocated(bytes, 1, 0, now as u64 + 1);
        }
        assert_eq!((pattern.repeats, pattern.rises), (3, 2));
        assert_eq!((pattern.first_ticks, pattern.last_ticks, pattern.last_bytes), (1, 7, 1));
    }

    #[test]
    fn samples_stay_few_and_spread_over_all_allocations() {
        let mut growth = None;
        for count in 1..=100_000 {
            Growth::enter(&mut growth, count, GrowthSample { ticks: count, live_bytes: 10 * count });
        }
        let samples = Growth::samples(growth.as_deref());
        assert!((GROWTH_SAMPLES / 2..=GROWTH_SAMPLES).contains(&samples.len()), "{}", samples.len());
        assert_eq!(samples[0].ticks, GROWTH_FROM);
        assert!(samples.last().is_some_and(|last| last.ticks > 90_000));
        let gaps: Vec<u64> = samples.windows(2).map(|pair| pair[1].ticks - pair[0].ticks).collect();
        assert!(gaps.iter().max() <= gaps.iter().min().map(|least| 2 * least).as_ref(), "{gaps:?}");
    }

    #[test]
    fn a_site_of_few_blocks_keeps_no_samples() {
        let mut growth = None;
        for count in 1..GROWTH_FROM {
            Growth::enter(&mut growth, count, GrowthSample { ticks: count, live_bytes: 1 });
        }
        assert!(growth.is_none());
    }
}
