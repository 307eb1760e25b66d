//! Tells a steady climb of memory in use from steps and from noise.

use std::collections::VecDeque;

/// Samples that are looked at.
const WINDOW: usize = 60;
/// Fewer than these say nothing.
const FEWEST: usize = 10;
/// A climb has at least so many levels: one or two large allocations are none.
const LEVELS: usize = 5;
/// Less is noise.
const LEAST_RISE: u64 = 1 << 20;

/// The last samples of one number of bytes, with their times in seconds.
#[derive(Clone, Debug, Default)]
pub struct Climb {
    samples: VecDeque<(f64, u64)>,
}

impl Climb {
    /// Takes a sample in; how fast it climbs in bytes per second, if it does so steadily.
    pub fn sample(&mut self, at_s: f64, bytes: u64) -> Option<f64> {
        if self.samples.len() == WINDOW {
            self.samples.pop_front();
        }
        self.samples.push_back((at_s, bytes));
        self.rate()
    }

    fn rate(&self) -> Option<f64> {
        let count = self.samples.len();
        let (&(first_s, first), &(last_s, last)) = (self.samples.front()?, self.samples.back()?);
        let (rise, seconds) = (last.saturating_sub(first), last_s - first_s);
        if count < FEWEST || rise < LEAST_RISE || seconds <= 0.0 {
            return None;
        }
        let mut levels: Vec<u64> = self.samples.iter().map(|sample| sample.1).collect();
        let (mut up, mut down) = (0usize, 0usize);
        for later in 1..count {
            up += levels[..later].iter().filter(|&&earlier| earlier < levels[later]).count();
            down += levels[..later].iter().filter(|&&earlier| earlier > levels[later]).count();
        }
        levels.sort_unstable();
        levels.dedup();
        let pairs = count * (count - 1) / 2;
        let steady = up * 10 >= pairs * 6 && down * 20 <= pairs && levels.len() >= LEVELS;
        steady.then(|| rise as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_rate(values: impl Iterator<Item = u64>) -> Option<f64> {
        let mut climb = Climb::default();
        values.enumerate().map(|(at, value)| climb.sample(at as f64, value)).last().flatten()
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_leak_climbs() {
        assert_eq!(last_rate((0..20).map(|n| n * MIB)), Some(MIB as f64));
        assert!(last_rate((0..60).map(|n| n / 4 * MIB)).is_some(), "in small steps");
        assert!(last_rate((0..60).map(|n| n * MIB + n % 2 * MIB / 2)).is_some(), "with a ripple");
    }

    #[test]
    fn what_is_no_climb() {
        assert_eq!(last_rate((0..9).map(|n| n * MIB)), None, "too short");
        assert_eq!(last_rate((0..60).map(|n| n / 30 * 100 * MIB)), None, "one large allocation");
        assert_eq!(last_rate((0..60).map(|n| n % 10 * MIB)), None, "a loop");
        assert_eq!(last_rate((0..60).map(|n| 60 - n)), None, "a fall");
        assert_eq!(last_rate((0..60).map(|n| n * 1000)), None, "noise");
        assert_eq!(last_rate(std::iter::repeat_n(MIB, 60)), None, "nothing");
    }
}
