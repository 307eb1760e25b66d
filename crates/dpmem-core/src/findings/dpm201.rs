//! DPM201: a line whose blocks become more and more.

use super::activity::Activity;
use super::facts::Facts;
use super::operation::joins;
use super::place::{Place, is_comprehension, sites_by_place};
use super::{Explanation, Finding, LEAST_REPEATS, MIB, RuleDoc, Severity, Value};
use crate::bytes::size;
use crate::pattern::GrowthSample;
use crate::snapshot::{SiteSnapshot, Snapshot};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM201",
    name: "growing-site",
    severity: Severity::Warning,
    what: "Fires for a line whose blocks in use grow steadily, and still do in the last third of the run (by what the
program did, not by the clock): 20 blocks or more and 1 MiB or more in use at the end. A line whose blocks are gone at
the end must have made 50 blocks without freeing one, 4 MiB and most of the peak. Arrays built up front or in one
comprehension, caches that are full, and parts that are collected to be joined into one array are left alone.",
    explanation: Some(Explanation {
        why: "Memory that only grows fills the device, after minutes or after days; until then the run pays for allocating
what it doesn't need.",
        example: "
states = []
for step in range(10_000):
    x = x * decay
    states.append(x)
",
        instead: "
states = collections.deque(maxlen=2)
for step in range(10_000):
    x = x * decay
    states.append(x)
",
    }),
};

const BYTES_AT_LEAST: u64 = MIB;
/// The same for blocks that are gone at the end: stronger evidence, since the program did let go of them.
const GONE_REPEATS: u64 = 50;
const GONE_BYTES: u64 = 4 * MIB;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let snapshot = facts.snapshot;
    let activity = Activity::of(snapshot);
    let grows = |site: &SiteSnapshot| {
        site.alloc_count >= LEAST_REPEATS
            && joins(&site.frames).is_none()
            && is_steady(site, &activity)
            && !is_comprehension(&site.frames, facts.source)
    };
    let places =
        sites_by_place(snapshot, |site| grows(site) && (keeps(site) || gave_up_at_last(site, snapshot)));
    places
        .into_iter()
        .filter(|(_, sites)| !is_joined_later(snapshot, sites.iter().map(|site| site.peak_bytes).sum()))
        .map(|(place, sites)| finding(place, &sites))
        .collect()
}

fn finding(place: Place, sites: &[&SiteSnapshot]) -> Finding {
    let sum = |of: fn(&SiteSnapshot) -> u64| sites.iter().map(|site| of(site)).sum::<u64>();
    let (allocs, frees) = (sum(|s| s.alloc_count), sum(|s| s.free_count));
    let (live, most) = (sum(|s| s.live_bytes), sum(|s| s.peak_bytes));
    let at_end = if live > 0 {
        format!("{} in use at the end", size(live))
    } else {
        format!("{} at the most", size(most))
    };
    Finding {
        rule: &DOC,
        place: Some(place),
        device: sites[0].device,
        message: format!("memory from this line kept growing to the end: {allocs} allocations, {frees} frees, {at_end}"),
        advice: "keep fewer of them (a bounded `collections.deque(maxlen=...)`), reduce each before keeping it, or move \
                 what must be kept to the host with `dpnp.asnumpy(...).copy()`"
            .to_string(),
        evidence: vec![
            ("alloc_count", Value::Whole(allocs)),
            ("free_count", Value::Whole(frees)),
            ("live_bytes", Value::Whole(live)),
            ("peak_bytes", Value::Whole(most)),
        ],
    }
}

fn keeps(site: &SiteSnapshot) -> bool {
    site.live_bytes >= BYTES_AT_LEAST && site.live_count >= LEAST_REPEATS
}

/// Nothing was freed while it grew, and it was most of the peak.
fn gave_up_at_last(site: &SiteSnapshot, snapshot: &Snapshot) -> bool {
    let pattern = &site.pattern;
    site.alloc_count >= GONE_REPEATS
        && pattern.freed_before_newest == 0
        && pattern.late_free_count * 2 < site.alloc_count
        && site.peak_bytes >= GONE_BYTES
        && site.peak_bytes * 2 >= snapshot.peak.bytes
}

/// Each third of the site's own samples lies above the one before, it grew over more than a third of the run, and it
/// still did at the end.
fn is_steady(site: &SiteSnapshot, activity: &Activity) -> bool {
    let samples = &site.growth;
    let mean = |part: &[GrowthSample]| {
        part.iter().map(|s| s.live_bytes as f64).sum::<f64>() / part.len().max(1) as f64
    };
    let third = samples.len() / 3;
    if third == 0 {
        return false;
    }
    let parts =
        [&samples[..third], &samples[third..samples.len() - third], &samples[samples.len() - third..]]
            .map(mean);
    let (first, last) = (activity.share(site.pattern.first_ticks), activity.share(site.pattern.last_ticks));
    parts[1] > 1.1 * parts[0] && parts[2] > 1.1 * parts[1] && last >= 0.9 && last - first >= 1.0 / 3.0
}

/// Whether the program joined about that many bytes into one array: then the parts were collected on purpose.
fn is_joined_later(snapshot: &Snapshot, bytes: u64) -> bool {
    snapshot.sites.iter().any(|site| joins(&site.frames).is_some() && site.pattern.last_bytes * 2 >= bytes)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::kind::Kind;
    use crate::site::FreedBy;

    const ADD: &[&str] =
        &["empty", "_empty_like_pair_orderK", "BinaryElementwiseFunc.__call__", "dpnp_array.__add__"];

    fn lines(run: &Run) -> Vec<u32> {
        check(&Facts::of(&run.snapshot())).iter().filter_map(|f| f.place.as_ref().map(|p| p.line)).collect()
    }

    #[test]
    fn a_list_that_grows_to_the_end() {
        let mut run = Run::new();
        let site = run.site(ADD, 7, 1, Kind::Device);
        run.allocate_all(site, MIB, 40);
        assert_eq!(lines(&run), [7]);
    }

    #[test]
    fn a_cache_that_is_full_is_innocent() {
        let mut run = Run::new();
        let site = run.site(ADD, 7, 1, Kind::Device);
        let mut cached = std::collections::VecDeque::new();
        for _ in 0..200 {
            cached.push_back(run.allocate(site, MIB));
            if cached.len() > 10 {
                cached.pop_front().into_iter().for_each(|block| run.free(block, FreedBy::Program));
            }
        }
        assert_eq!(lines(&run), []);
    }

    #[test]
    fn arrays_built_up_front_are_innocent() {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 3, 1, Kind::Device);
        run.allocate_all(site, MIB, 40);
        (0..40).for_each(|_| run.launch(9, 1));
        assert_eq!(lines(&run), []);
    }

    #[test]
    fn parts_that_are_joined_are_innocent() {
        let mut run = Run::new();
        let site = run.site(ADD, 7, 1, Kind::Device);
        run.allocate_all(site, MIB, 40);
        let join = run.site(&["empty", "concat", "concatenate"], 9, 1, Kind::Device);
        run.allocate(join, 40 * MIB);
        assert_eq!(lines(&run), []);
    }

    #[test]
    fn a_loop_that_frees_is_innocent() {
        let mut run = Run::new();
        let site = run.site(ADD, 7, 1, Kind::Device);
        for _ in 0..200 {
            let block = run.allocate(site, MIB);
            run.free(block, FreedBy::Program);
        }
        assert_eq!(lines(&run), []);
    }

    #[test]
    fn one_in_ten_that_stays_is_growth() {
        let mut run = Run::new();
        let site = run.site(ADD, 7, 1, Kind::Device);
        for step in 0..400 {
            let block = run.allocate(site, MIB);
            if step % 10 != 0 {
                run.free(block, FreedBy::Program);
            }
        }
        assert_eq!(lines(&run), [7]);
    }

    #[test]
    fn growth_in_a_function_that_returns_is_seen() {
        let mut run = Run::new();
        let site = run.site(ADD, 7, 1, Kind::Device);
        let blocks = run.allocate_all(site, MIB, 60);
        blocks.into_iter().for_each(|block| run.free(block, FreedBy::Program));
        assert_eq!(lines(&run), [7]);
    }
}
