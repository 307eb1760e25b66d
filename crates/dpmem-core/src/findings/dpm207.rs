//! DPM207: memory that nobody refers to any more waits for queued work.

use super::facts::Facts;
use super::place::{Place, site};
use super::{Explanation, Finding, MIB, RuleDoc, Severity, Value};
use crate::bytes::size;
use crate::snapshot::SiteSnapshot;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM207",
    name: "in-flight-pileup",
    severity: Severity::Warning,
    what: "Fires for a line that repeats itself (8 times or more), of which three blocks or more were in use together at
the peak and made up 64 MiB or more and two fifths of it, although most of its blocks had no Python owner any more when
they were freed: the runtime freed them when the work that used them had ended.",
    explanation: Some(Explanation {
        why: "Operations are queued and the host runs ahead. Each result that is thrown away stays until its kernel has run,
so the peak is many results instead of one.",
        example: "
for _ in range(20):
    x @ x.T
",
        instead: "
result = dpnp.empty((n, n))
for _ in range(20):
    dpnp.matmul(x, x.T, out=result)
",
    }),
};

const REPEATS_AT_LEAST: u64 = 8;
const BLOCKS_AT_LEAST: u64 = 3;
const BYTES_AT_LEAST: u64 = 64 * MIB;

/// Blocks of one line at the peak.
struct Pile<'a> {
    site: &'a SiteSnapshot,
    bytes: u64,
    count: u64,
}

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let peak = &facts.snapshot.peak;
    let mut piles: Vec<(Place, Pile<'_>)> = Vec::new();
    for &(id, bytes, count) in peak.sites.iter().flatten() {
        let Some(site) = site(facts.snapshot, id).filter(|site| waited(site)) else { continue };
        let Some(place) = Place::of(&site.frames) else { continue };
        match piles.iter_mut().find(|(known, _)| *known == place) {
            Some((_, pile)) => {
                pile.bytes += bytes;
                pile.count += count;
            }
            None => piles.push((place, Pile { site, bytes, count })),
        }
    }
    let high = |pile: &Pile<'_>| {
        pile.count >= BLOCKS_AT_LEAST && pile.bytes >= BYTES_AT_LEAST && pile.bytes * 5 >= peak.bytes * 2
    };
    piles
        .into_iter()
        .filter(|(_, pile)| high(pile))
        .map(|(place, pile)| finding(place, &pile, peak.bytes))
        .collect()
}

/// A line that makes blocks of one size again and again, most of which the runtime itself had to free.
fn waited(site: &SiteSnapshot) -> bool {
    let pattern = &site.pattern;
    site.alloc_count >= REPEATS_AT_LEAST
        && pattern.repeats * 2 >= site.alloc_count
        && pattern.late_free_count * 2 > site.alloc_count
}

fn finding(place: Place, pile: &Pile<'_>, peak: u64) -> Finding {
    let late = pile.site.pattern.late_free_count;
    Finding {
        rule: &DOC,
        place: Some(place),
        device: pile.site.device,
        message: format!(
            "{} blocks of this line ({} of {} at the peak) were in use together: results that nobody refers to any more \
             wait for the work that makes them",
            pile.count,
            size(pile.bytes),
            size(peak)
        ),
        advice:
            "reuse one result with `out=`, or wait for the queue from time to time: `x.sycl_queue.wait()`"
                .to_string(),
        evidence: vec![
            ("blocks_at_peak", Value::Whole(pile.count)),
            ("bytes_at_peak", Value::Whole(pile.bytes)),
            ("peak_bytes", Value::Whole(peak)),
            ("freed_by_runtime_count", Value::Whole(late)),
            ("alloc_count", Value::Whole(pile.site.alloc_count)),
        ],
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::kind::Kind;
    use crate::site::FreedBy;

    const MATMUL: &[&str] = &["empty", "_create_result_array", "matmul", "dpnp_array.__matmul__"];

    fn found(ahead: usize, bytes: u64, by: FreedBy) -> Vec<Finding> {
        let mut run = Run::new();
        let site = run.site(MATMUL, 8, 1, Kind::Device);
        let mut queued = std::collections::VecDeque::new();
        for _ in 0..20 {
            queued.push_back(run.allocate(site, bytes));
            if queued.len() > ahead {
                queued.pop_front().into_iter().for_each(|block| run.free(block, by));
            }
        }
        queued.into_iter().for_each(|block| run.free(block, by));
        check(&Facts::of(&run.snapshot()))
    }

    #[test]
    fn results_that_pile_up_are_found() {
        let findings = found(6, 32 * MIB, FreedBy::Runtime);
        assert_eq!(findings[0].place.as_ref().map(|place| place.line), Some(8));
        assert!(findings[0].advice.contains("wait()"));
    }

    #[test]
    fn one_at_a_time_small_piles_and_owned_blocks_are_innocent() {
        assert!(found(1, 32 * MIB, FreedBy::Runtime).is_empty());
        assert!(found(6, MIB, FreedBy::Runtime).is_empty());
        assert!(found(6, 32 * MIB, FreedBy::Program).is_empty());
    }
}
