//! DPM301: a loop allocates the same block again and again.

use super::facts::Facts;
use super::operation::{Purpose, called_name, function, has_in_place_form, is_reduction, purpose};
use super::place::{Place, sites_by_place};
use super::{Finding, KIB, LEAST_REPEATS, RuleDoc, Severity, Value};
use crate::bytes::{duration, size};
use crate::kind::Kind;
use crate::snapshot::SiteSnapshot;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM301",
    name: "alloc-in-loop",
    severity: Severity::Warning,
    what: "Fires for a line that allocated 20 blocks or more of one size, 1 KiB or larger (results of reductions: 4 KiB), for results that could be
written into an existing array (operators and functions that take `out=`, and arrays filled by a rule), and whose blocks
were freed again while it went on. Results that are kept, sizes that change, conversions and calls that use `out=` are
left alone. The evidence holds the seconds that the runtime spent allocating and freeing for the line (`runtime_s`).",
    explanation: None,
};

/// Smaller blocks are vectors of a few numbers.
const BYTES_AT_LEAST: u64 = KIB;
/// What a reduction leaves is small beside what it reads; below a page little is to be gained.
const REDUCED_BYTES_AT_LEAST: u64 = 4 * KIB;
/// A result that is dropped or replaced in the next iteration is live together with one successor, or two; more of them
/// are kept for later, as in a cache.
const LIVE_AT_MOST: f64 = 2.5;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let mut lines: Vec<(Place, Line<'_>)> = sites_by_place(facts.snapshot, repeats)
        .into_iter()
        .map(|(place, sites)| (place, Line::of(sites)))
        .collect();
    lines.sort_by_key(|(_, line)| std::cmp::Reverse(line.runtime_ticks()));
    lines.into_iter().map(|(place, line)| line.finding(place, facts)).collect()
}

fn repeats(site: &SiteSnapshot) -> bool {
    let pattern = &site.pattern;
    let of_one_size = 10 * (pattern.repeats + 1) >= 9 * site.alloc_count;
    let freed_meanwhile = 2 * pattern.freed_before_newest >= site.alloc_count;
    // The runtime freed many: Python had let go of them, however many waited for the queue. That none was freed before the
    // last was allocated would mean that they were kept and dropped together.
    let waited = 4 * pattern.late_free_count >= site.alloc_count && pattern.freed_before_newest > 0;
    let least = if is_reduction(&site.frames) { REDUCED_BYTES_AT_LEAST } else { BYTES_AT_LEAST };
    let dropped_at_once = pattern.live_sum as f64 <= LIVE_AT_MOST * site.alloc_count as f64;
    site.kind != Kind::Host
        && site.alloc_count >= LEAST_REPEATS
        && site.allocated_bytes >= least * site.alloc_count
        && of_one_size
        && (waited || freed_meanwhile && dropped_at_once)
        && matches!(purpose(&site.frames), Purpose::Result | Purpose::Creation)
}

/// A line's operations that allocate again and again, in the order in which they stand.
struct Line<'a> {
    sites: Vec<&'a SiteSnapshot>,
}

impl<'a> Line<'a> {
    fn of(mut sites: Vec<&'a SiteSnapshot>) -> Self {
        sites.sort_by_key(|site| site.user_instruction);
        Line { sites }
    }

    fn sum(&self, of: fn(&SiteSnapshot) -> u64) -> u64 {
        self.sites.iter().map(|site| of(site)).sum()
    }

    fn runtime_ticks(&self) -> u64 {
        self.sum(|site| site.runtime_ticks)
    }

    fn finding(&self, place: Place, facts: &Facts<'_>) -> Finding {
        let runtime_s = self.runtime_ticks() as f64 * facts.seconds_per_tick;
        let (operations, each) = self.in_one_pass();
        let passes = self.sum(|site| site.alloc_count) / operations.max(1);
        let blocks = match operations {
            1 => format!("a block of {} and frees it", size(each)),
            _ => format!("{operations} blocks, {} in all, and frees them", size(each)),
        };
        Finding {
            rule: &DOC,
            device: self.sites[0].device,
            message: format!(
                "allocates {blocks} again, {passes} times; the runtime spent {} on that",
                duration(runtime_s)
            ),
            advice: self.advice(&place, facts),
            evidence: vec![
                ("alloc_count", Value::Whole(self.sum(|site| site.alloc_count))),
                ("block_bytes", Value::Whole(each / operations.max(1))),
                ("allocated_bytes", Value::Whole(self.sum(|site| site.allocated_bytes))),
                ("runtime_s", Value::Real(runtime_s)),
            ],
            place: Some(place),
        }
    }

    /// How many operations of the line allocate, and how much they do together when it runs once.
    fn in_one_pass(&self) -> (u64, u64) {
        let mut seen = Vec::new();
        let mut bytes = 0;
        for site in &self.sites {
            // One operation has several sites where its line is reached on several ways.
            if !seen.contains(&site.user_instruction) {
                seen.push(site.user_instruction);
                bytes += site.pattern.last_bytes;
            }
        }
        (seen.len() as u64, bytes)
    }

    fn advice(&self, place: &Place, facts: &Facts<'_>) -> String {
        let creation = self.sites.iter().find(|site| purpose(&site.frames) == Purpose::Creation);
        if let Some(creation) = creation {
            return format!(
                "allocate it once before the loop and refill it (`buffer[...] = value`, `buffer.fill(value)` or \
                 `out=buffer`) instead of calling `dpnp.{}` in every iteration",
                called_name(&creation.frames)
            );
        }
        let calls: Vec<String> = self
            .functions(place, facts)
            .iter()
            .map(|name| format!("`dpnp.{name}(..., out=buffer)`"))
            .collect();
        let how = match calls.as_slice() {
            [] => "the same call with `out=buffer`".to_string(),
            [one] => one.clone(),
            [one, two] => format!("{one}, then {two}, each with a buffer of its dtype and shape"),
            [first, .., last] => format!(
                "{first} and so on to {last} ({} calls), each with a buffer of its dtype and shape",
                calls.len()
            ),
        };
        let in_place = if self.sites.iter().any(|site| has_in_place_form(&site.frames)) {
            "; or in place (`x += y`) where the old value isn't needed any more"
        } else {
            ""
        };
        format!("allocate `buffer = dpnp.empty(...)` once before the loop and write into it: {how}{in_place}")
    }

    /// The functions behind the line's operations, each once, in the order in which they run. Where the frames don't tell
    /// a name, it is the next of those that were looked at.
    fn functions(&self, place: &Place, facts: &Facts<'_>) -> Vec<String> {
        let told: Vec<&str> = self.sites.iter().filter_map(|site| function(&site.frames)).collect();
        let looked = facts.operations.iter().filter(|(at, _)| at == place).map(|(_, name)| name.as_str());
        let mut looked = looked.filter(|name| !told.contains(name));
        let mut names: Vec<String> = Vec::new();
        for site in &self.sites {
            let name = function(&site.frames).or_else(|| looked.next());
            if let Some(name) = name.filter(|name| !names.iter().any(|known| known == name)) {
                names.push(name.to_string());
            }
        }
        names
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
    fn a_line_of_two_operations_names_both() {
        let mut run = Run::new();
        let unnamed =
            ["empty_like", "_empty_like_orderK", "UnaryElementwiseFunc.__call__", "DPNPUnaryFunc.__call__"];
        let sites = [run.site(&unnamed, 8, 1, Kind::Device), run.site(ADD, 8, 2, Kind::Device)];
        for _ in 0..40 {
            let blocks = sites.map(|site| run.allocate(site, MIB));
            blocks.into_iter().for_each(|block| run.free(block, FreedBy::Program));
        }
        let operations = [(Place { file: "a.py".into(), line: 8 }, "sqrt".to_string())];
        let snapshot = run.snapshot();
        let findings = check(&Facts { operations: &operations, ..Facts::of(&snapshot) });
        assert!(
            findings[0].message.starts_with("allocates 2 blocks, 2 MiB in all"),
            "{}",
            findings[0].message
        );
        assert!(findings[0].message.contains(", 40 times"), "{}", findings[0].message);
        assert!(
            findings[0].advice.contains("dpnp.sqrt(..., out=buffer)`, then `dpnp.add"),
            "{}",
            findings[0].advice
        );
        assert!(findings[0].advice.contains("+="), "{}", findings[0].advice);
    }

    #[test]
    fn few_steps_small_blocks_and_changing_sizes_are_innocent() {
        assert!(found(ADD, 19, |_| MIB, 1, FreedBy::Program).is_empty());
        assert!(found(ADD, 200, |_| 800, 1, FreedBy::Program).is_empty());
        assert!(
            found(&["empty", "_reduction_over_axis", "sum"], 200, |_| 2400, 1, FreedBy::Program).is_empty()
        );
        assert!(found(ADD, 200, |step| MIB + 8 * step as u64, 1, FreedBy::Program).is_empty());
    }

    #[test]
    fn kept_results_and_a_bounded_cache_are_innocent() {
        assert!(found(ADD, 200, |_| MIB, 200, FreedBy::Program).is_empty());
        assert!(found(ADD, 200, |_| MIB, 4, FreedBy::Program).is_empty());
    }

    #[test]
    fn kept_results_that_wait_for_the_last_operation_are_innocent() {
        let mut run = Run::new();
        let site = run.site(ADD, 8, 1, Kind::Device);
        let blocks = run.allocate_all(site, MIB, 30);
        blocks.into_iter().for_each(|block| run.free(block, FreedBy::Runtime));
        assert!(check(&Facts::of(&run.snapshot())).is_empty());
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
