//! DPM302: temporaries lift the peak.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::operation::{Purpose, called_name, joins, purpose};
use super::place::{Place, bare, library_frames, site, sites_by_place};
use super::{Explanation, Finding, KIB, MIB, RuleDoc, Severity, Value};
use crate::bytes::size;
use crate::kind::Kind;
use crate::site::LOOKED;
use crate::snapshot::SiteSnapshot;
use crate::stack::Frame;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM302",
    name: "hidden-temporaries",
    severity: Severity::Warning,
    what: "Fires for a line whose temporaries made up more than two fifths of the peak, 16 MiB or more: results in the
middle of its expression, operands cast to another dtype, and memory that a function needs in between. What the line
keeps is not counted.",
    explanation: Some(Explanation {
        why: "Each operator makes a new array, and all of an expression's arrays exist at once until the last of its kernels
has run: `2 * x + x * 3 - 1` needs four times the memory of its result.",
        example: "
y = 2 * x + x * 3 - 1
",
        instead: "
y = 2 * x
buffer = x * 3
dpnp.add(y, buffer, out=y)
y -= 1
",
    }),
};

const BYTES_AT_LEAST: u64 = 16 * MIB;

/// What one line had at the peak.
#[derive(Default)]
struct Line<'a> {
    parts: Vec<(&'a SiteSnapshot, u64, u64)>,
    /// The line's last instruction that allocates.
    last: Option<u32>,
}

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let peak = &facts.snapshot.peak;
    let mut lines: BTreeMap<Place, Line<'_>> = BTreeMap::new();
    for &(id, bytes, count) in peak.sites.iter().flatten() {
        let Some(site) = site(facts.snapshot, id) else { continue };
        if let Some(place) = Place::of(&site.frames) {
            lines.entry(place).or_default().parts.push((site, bytes, count));
        }
    }
    for (place, sites) in sites_by_place(facts.snapshot, |site| site.kind != Kind::Host) {
        if let Some(line) = lines.get_mut(&place) {
            line.last = sites.iter().filter_map(|site| site.user_instruction).max();
        }
    }
    let findings = lines.into_iter().filter_map(|(place, line)| {
        let temporaries = line.temporary_bytes();
        let high = temporaries >= BYTES_AT_LEAST && temporaries * 5 > peak.bytes * 2;
        high.then(|| finding(place, &line, temporaries, peak.bytes))
    });
    findings.collect()
}

impl Line<'_> {
    /// Bytes of blocks that the line does not hand on.
    fn temporary_bytes(&self) -> u64 {
        self.temporaries().map(|(_, bytes)| bytes).sum()
    }

    /// The sites of blocks that the line does not hand on, with what each had at the peak for one run of the line: blocks
    /// of several runs that are there together wait for queued work, which is another finding.
    fn temporaries(&self) -> impl Iterator<Item = (&SiteSnapshot, u64)> {
        // The last operation of an expression makes what the line is for; several stacks may share its instruction.
        let temporary = |site: &SiteSnapshot| {
            let is_last = site.user_instruction == self.last;
            match purpose(&site.frames) {
                Purpose::Cast => true,
                Purpose::Other => {
                    works_in_between(site) || (!is_last && joins(&site.frames).is_some() && dropped(site))
                }
                Purpose::Result | Purpose::Creation => !is_last && dropped(site),
            }
        };
        self.parts
            .iter()
            .filter(move |(site, ..)| temporary(site))
            .map(|&(site, bytes, count)| (site, bytes / count.max(1)))
    }

    /// What to do about the largest of them.
    fn advice(&self) -> String {
        let Some((largest, bytes)) = self.temporaries().max_by_key(|&(_, bytes)| bytes) else {
            return String::new();
        };
        if let Some(join) = joins(&largest.frames) {
            return format!(
                "`{join}` makes {} only for the next step: add up or reduce part by part instead of joining first",
                size(bytes)
            );
        }
        match purpose(&largest.frames) {
            Purpose::Cast => "give the operands one dtype beforehand (`astype` once), so that none has to be cast here".to_string(),
            Purpose::Other => format!(
                "`{}` itself needs {} in between: call it on parts of the array, one after the other",
                called_name(&largest.frames),
                size(bytes)
            ),
            Purpose::Result | Purpose::Creation => {
                "compute it in steps that reuse one array: `dpnp.multiply(x, 2, out=y)`, then `y += ...`; or in chunks".to_string()
            }
        }
    }
}

/// Whether the blocks of a site lost their owner before the line was through, or while work on them was still queued, as
/// the middle of an expression does; what is bound to a name lives on beyond the line.
fn dropped(site: &SiteSnapshot) -> bool {
    let pattern = &site.pattern;
    let looked = site.free_count.saturating_sub(pattern.late_free_count).min(u64::from(LOOKED));
    2 * pattern.late_free_count >= site.alloc_count
        || pattern.same_line_free_count > 0 && 2 * pattern.same_line_free_count >= looked
}

/// Memory that C++ needs in between: allocated below a library function that makes no array at that place.
fn works_in_between(site: &SiteSnapshot) -> bool {
    const COPYING: [&str; 5] =
        ["copy", "astype", "_copy_to_numpy", "_asarray_from_numpy_ndarray", "__init__"];
    let inner = library_frames(&site.frames).first();
    let makes_array =
        |frame: &Frame| frame.file.ends_with("/_ctors.py") || COPYING.contains(&bare(&frame.function));
    dropped(site) && inner.is_some_and(|frame| !makes_array(frame))
}

fn finding(place: Place, line: &Line<'_>, temporaries: u64, peak: u64) -> Finding {
    let large = line.parts.iter().filter(|&&(_, bytes, count)| bytes >= count * 64 * KIB);
    let blocks: u64 = large.map(|&(_, _, count)| count).sum();
    Finding {
        rule: &DOC,
        place: Some(place),
        device: line.parts[0].0.device,
        message: format!(
            "{} of the peak of {} are temporaries of this line, which had {blocks} arrays in use at once",
            size(temporaries),
            size(peak)
        ),
        advice: line.advice(),
        evidence: vec![
            ("temporary_bytes", Value::Whole(temporaries)),
            ("peak_bytes", Value::Whole(peak)),
            ("blocks_at_peak", Value::Whole(blocks)),
        ],
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::site::FreedBy;

    const OPERATOR: &[&str] =
        &["empty", "_empty_like_pair_orderK", "BinaryElementwiseFunc.__call__", "dpnp_array.__add__"];

    /// An expression of `operations` on a line of their own, below an array made on line 1.
    fn found(operations: u32, bytes: u64, by: FreedBy) -> Vec<Finding> {
        let mut run = Run::new();
        let made = run.site(&["ones", "ones"], 1, 1, Kind::Device);
        run.allocate(made, bytes);
        let blocks: Vec<_> = (0..operations)
            .map(|n| {
                let site = run.site(OPERATOR, 2, n, Kind::Device);
                run.allocate(site, bytes)
            })
            .collect();
        blocks.into_iter().rev().skip(1).for_each(|block| run.free(block, by));
        check(&Facts::of(&run.snapshot()))
    }

    #[test]
    fn an_expression_of_four_operators() {
        let findings = found(4, 64 * MIB, FreedBy::Runtime);
        assert_eq!(findings[0].place.as_ref().map(|place| place.line), Some(2));
        assert_eq!(findings[0].evidence[0], ("temporary_bytes", Value::Whole(192 * MIB)));
        assert_eq!(found(4, 64 * MIB, FreedBy::SameLine).len(), 1);
    }

    #[test]
    fn one_temporary_small_ones_and_named_results_are_innocent() {
        assert!(found(2, 64 * MIB, FreedBy::Runtime).is_empty());
        assert!(found(4, MIB, FreedBy::Runtime).is_empty());
        assert!(found(4, 64 * MIB, FreedBy::Program).is_empty());
    }

    #[test]
    fn blocks_of_many_runs_of_the_line_are_no_temporaries_of_one() {
        let mut run = Run::new();
        let sites = [run.site(OPERATOR, 2, 1, Kind::Device), run.site(OPERATOR, 2, 2, Kind::Device)];
        let blocks: Vec<_> = (0..8).flat_map(|_| sites.map(|site| run.allocate(site, 32 * MIB))).collect();
        blocks.into_iter().for_each(|block| run.free(block, FreedBy::Runtime));
        assert!(check(&Facts::of(&run.snapshot())).is_empty());
    }

    #[test]
    fn memory_that_a_function_needs_in_between() {
        let mut run = Run::new();
        let made = run.site(&["ones", "ones"], 1, 1, Kind::Device);
        run.allocate(made, 64 * MIB);
        let inner = run.site(&["_argsort", "argsort"], 2, 1, Kind::Device);
        let block = run.allocate(inner, 128 * MIB);
        run.free(block, FreedBy::Runtime);
        assert_eq!(check(&Facts::of(&run.snapshot())).len(), 1);
    }
}
