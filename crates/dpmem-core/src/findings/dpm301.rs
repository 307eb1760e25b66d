//! DPM301: a loop allocates the same block again and again.

use super::facts::Facts;
use super::operation::{Purpose, called_name, purpose, with_out};
use super::place::{Place, sites_by_place};
use super::{Finding, KIB, LEAST_REPEATS, RuleDoc, Severity, Value};
use crate::bytes::{duration, size};
use crate::kind::Kind;
use crate::snapshot::SiteSnapshot;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM301",
    name: "alloc-in-loop",
    severity: Severity::Warning,
    what: "Fires for a line that allocated 20 blocks or more of one size, 4 KiB or larger, for results that could be
written into an existing array (operators and functions that take `out=`, and arrays filled by a rule), and whose blocks
were freed again while it went on. Results that are kept, sizes that change, conversions and calls that use `out=` are
left alone. The evidence holds the seconds that the runtime spent allocating and freeing for the line (`runtime_s`).",
    why: "Each iteration pays for an allocation and a free, which cost more than the arithmetic up to about a million
elements, and a freed block may still wait for the kernel that uses it, so memory in use rises.",
    example: "
for _ in range(steps):
    c = dpnp.add(a, b)
",
    instead: "
c = dpnp.empty_like(a)
for _ in range(steps):
    dpnp.add(a, b, out=c)
",
};

/// Below a page the driver's own pool serves the block, and little is to be gained.
const BYTES_AT_LEAST: u64 = 4 * KIB;
/// A result that is dropped or replaced in the next iteration is live together with one successor, or two; more of them
/// are kept for later, as in a cache.
const LIVE_AT_MOST: f64 = 2.5;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let places = sites_by_place(facts.snapshot, repeats);
    places.into_iter().map(|(place, sites)| finding(place, &sites, facts.seconds_per_tick)).collect()
}

fn repeats(site: &SiteSnapshot) -> bool {
    let pattern = &site.pattern;
    let of_one_size = 10 * (pattern.repeats + 1) >= 9 * site.alloc_count;
    let freed_meanwhile = 2 * pattern.freed_before_newest >= site.alloc_count;
    let waited = 2 * pattern.late_free_count >= site.alloc_count;
    let dropped_at_once = pattern.live_sum as f64 <= LIVE_AT_MOST * site.alloc_count as f64;
    site.kind != Kind::Host
        && site.alloc_count >= LEAST_REPEATS
        && site.allocated_bytes >= BYTES_AT_LEAST * site.alloc_count
        && of_one_size
        && freed_meanwhile
        && (waited || dropped_at_once)
        && matches!(purpose(&site.frames), Purpose::Result | Purpose::Creation)
}

fn finding(place: Place, sites: &[&SiteSnapshot], seconds_per_tick: f64) -> Finding {
    let busiest = sites.iter().max_by_key(|site| site.allocated_bytes).unwrap_or(&sites[0]);
    let count: u64 = sites.iter().map(|site| site.alloc_count).sum();
    let runtime_s = sites.iter().map(|site| site.runtime_ticks).sum::<u64>() as f64 * seconds_per_tick;
    let each = busiest.pattern.last_bytes;
    let advice = match purpose(&busiest.frames) {
        Purpose::Creation => format!(
            "allocate it once before the loop and refill it (`buffer[...] = value`, `buffer.fill(value)` or `out=buffer`) \
             instead of calling `dpnp.{}` in every iteration",
            called_name(&busiest.frames)
        ),
        _ => format!(
            "allocate `buffer = dpnp.empty(...)` once before the loop and write into it: {}",
            with_out(&busiest.frames)
        ),
    };
    Finding {
        rule: &DOC,
        place: Some(place),
        device: busiest.device,
        message: format!(
            "allocates a block of {} and frees it again, {count} times; the runtime spent {} on that",
            size(each),
            duration(runtime_s)
        ),
        advice,
        evidence: vec![
            ("alloc_count", Value::Whole(count)),
            ("block_bytes", Value::Whole(each)),
            ("allocated_bytes", Value::Whole(sites.iter().map(|site| site.allocated_bytes).sum())),
            ("runtime_s", Value::Real(runtime_s)),
        ],
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;

    use super::super::MIB;
    use super::super::testing::Run;
    use super::*;
    use crate::site::FreedBy;

    const ADD: &[&str] =
        &["empty", "_empty_like_pair_orderK", "BinaryElementwiseFunc.__call__", "dpnp_array.__add__"];

    /// `kept`: how many of the line's blocks are live at a time.
    fn found(
        library: &[&str],
        count: usize,
        bytes: impl Fn(usize) -> u64,
        kept: usize,
        by: FreedBy,
    ) -> Vec<Finding> {
        let mut run = Run::new();
        let site = run.site(library, 8, 1, Kind::Device);
        let mut live = VecDeque::new();
        for step in 0..count {
            live.push_back(run.allocate(site, bytes(step)));
            if live.len() > kept {
                live.pop_front().into_iter().for_each(|block| run.free(block, by));
            }
        }
        check(&Facts::of(&run.snapshot()))
    }

    #[test]
    fn a_result_per_step() {
        let findings = found(ADD, 200, |_| MIB, 1, FreedBy::Program);
        assert_eq!(findings[0].place.as_ref().map(|place| place.line), Some(8));
        assert!(findings[0].advice.contains("dpnp.add(..., out=buffer)"), "{}", findings[0].advice);
        let (_, runtime) =
            findings[0].evidence.iter().find(|(key, _)| *key == "runtime_s").expect("it is stated");
        assert!(matches!(runtime, Value::Real(seconds) if *seconds > 0.0));
        assert_eq!(found(ADD, 200, |_| MIB, 12, FreedBy::Runtime).len(), 1, "the host ran ahead");
        assert_eq!(found(&["zeros", "zeros"], 20, |_| 4096, 0, FreedBy::Program).len(), 1);
    }

    #[test]
    fn few_steps_small_blocks_and_changing_sizes_are_innocent() {
        assert!(found(ADD, 19, |_| MIB, 1, FreedBy::Program).is_empty());
        assert!(found(ADD, 200, |_| 2400, 1, FreedBy::Program).is_empty());
        assert!(found(ADD, 200, |step| MIB + 8 * step as u64, 1, FreedBy::Program).is_empty());
    }

    #[test]
    fn kept_results_and_a_bounded_cache_are_innocent() {
        assert!(found(ADD, 200, |_| MIB, 200, FreedBy::Program).is_empty());
        assert!(found(ADD, 200, |_| MIB, 4, FreedBy::Program).is_empty());
    }

    #[test]
    fn conversions_and_casts_are_innocent() {
        let cast =
            ["empty_like", "_empty_like_orderK", "BinaryElementwiseFunc.__call__", "DPNPBinaryFunc.__call__"];
        assert!(found(&cast, 200, |_| MIB, 1, FreedBy::Program).is_empty());
        assert!(
            found(&["_asarray_from_numpy_ndarray", "asarray", "asarray"], 200, |_| MIB, 1, FreedBy::Program)
                .is_empty()
        );
    }
}
