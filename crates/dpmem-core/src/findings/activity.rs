//! How far the program had come, by what it had done and not by the clock: a kernel that is compiled once at the end
//! takes longer than the loop before it.

use crate::snapshot::Snapshot;

/// Events of one kind at one place, and when the first and the last of them were.
struct Series {
    count: f64,
    first: u64,
    last: u64,
}

impl Series {
    /// Events up to a moment, as if they were evenly spread.
    fn until(&self, ticks: u64) -> f64 {
        if ticks >= self.last {
            return self.count;
        }
        if ticks < self.first {
            return 0.0;
        }
        self.count * (ticks - self.first) as f64 / (self.last - self.first) as f64
    }
}

/// What the program did on the device: allocations, copies, kernel launches.
pub(super) struct Activity {
    series: Vec<Series>,
    total: f64,
}

impl Activity {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let series = |count: u64, first: u64, last: u64| Series { count: count as f64, first, last };
        let sites = snapshot.sites.iter().filter(|site| site.alloc_count > 0);
        let allocations = sites.map(|s| series(s.alloc_count, s.pattern.first_ticks, s.pattern.last_ticks));
        let copies = snapshot.transfers.iter().map(|t| &t.counts);
        let copies = copies.map(|counts| series(counts.count, counts.first_ticks, counts.last_ticks));
        let launches = snapshot.launches.iter().map(|l| series(l.count, l.first_ticks, l.last_ticks));
        let series: Vec<Series> = allocations.chain(copies).chain(launches).collect();
        let total = series.iter().map(|series| series.count).sum();
        Activity { series, total }
    }

    /// How much of it had been done at a moment, from 0 to 1.
    pub(super) fn share(&self, ticks: u64) -> f64 {
        self.series.iter().map(|series| series.until(ticks)).sum::<f64>() / self.total.max(1.0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn a_pause_is_no_activity() {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 1, 1, Kind::Device);
        run.allocate_all(site, 8, 50);
        let half = run.snapshot().sites[0].pattern.last_ticks;
        run.wait(1_000_000);
        (0..50).for_each(|_| run.launch(2, 1));
        let activity = Activity::of(&run.snapshot());
        assert!((activity.share(half) - 0.5).abs() < 0.01);
        assert!((activity.share(half + 500_000) - 0.5).abs() < 0.01);
        assert_eq!((activity.share(0), activity.share(u64::MAX)), (0.0, 1.0));
    }
}
