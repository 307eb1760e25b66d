//! DPM202: a small view keeps a large block.

use super::facts::{Facts, HeldBlock, HolderKind, HolderRecord};
use super::held::by_place;
use super::{Finding, KIB, MIB, RuleDoc, Severity, Value};
use crate::bytes::size;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM202",
    name: "view-pins-block",
    severity: Severity::Warning,
    what: "Fires for blocks in use at the end of which all arrays together show at most an eighth, where a line's blocks
hold 1 MiB or more that nobody can see. Views of an array that is still there itself are left alone.",
    explanation: None,
};

/// A block is pinned if at most this part of it can be seen.
const SEEN_PART: u64 = 8;
/// Smaller blocks cost less than an array's own Python objects.
const BLOCK_AT_LEAST: u64 = 64 * KIB;
const PINNED_AT_LEAST: u64 = MIB;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let places = by_place(facts, pinned);
    let pinned = places.into_iter().filter(|(_, held)| held.bytes >= PINNED_AT_LEAST);
    let findings = pinned.map(|(place, held)| {
        let message = format!(
            "a view of a few elements keeps all of its array in memory ({}): {}",
            held.amount(),
            held.paths()
        );
        let advice =
            "take a copy of the part, so that the rest can be freed: `part = array[...].copy()`".to_string();
        let covered: u64 = facts
            .held
            .iter()
            .filter(|block| pinned_by(block, &held.holders))
            .filter_map(|b| b.covered_bytes)
            .sum();
        let mut finding =
            held.finding(&DOC, place, format!("{message}; only {} of it are in view", size(covered)), advice);
        finding.evidence.push(("viewed_bytes", Value::Whole(covered)));
        finding
    });
    findings.collect()
}

fn pinned(block: &HeldBlock) -> Option<&HolderRecord> {
    let covered = block.covered_bytes?;
    if block.bytes < BLOCK_AT_LEAST || covered == 0 || covered.saturating_mul(SEEN_PART) > block.bytes {
        return None;
    }
    // What holds it for another reason is that reason's finding.
    let other = |kind| {
        matches!(
            kind,
            HolderKind::Exception | HolderKind::Cycle | HolderKind::Notebook | HolderKind::HostCopy
        )
    };
    block.holders.first().filter(|_| !block.holders.iter().any(|holder| other(holder.kind)))
}

fn pinned_by(block: &HeldBlock, holders: &[&HolderRecord]) -> bool {
    block.holders.first().is_some_and(|first| holders.iter().any(|holder| std::ptr::eq(*holder, first)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::{Run, held};
    use super::*;
    use crate::kind::Kind;

    fn found(covered: u64, bytes: u64, kind: HolderKind) -> usize {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 4, 1, Kind::Device);
        run.allocate(site, bytes);
        let (snapshot, blocks) = (run.snapshot(), [held(site, bytes, covered, &[(kind, "__main__.row")])]);
        check(&Facts { held: &blocks, ..Facts::of(&snapshot) }).len()
    }

    #[test]
    fn a_small_view_of_a_large_block() {
        assert_eq!(found(40, 64 * MIB, HolderKind::View), 1);
    }

    #[test]
    fn half_of_it_in_view_and_small_blocks_are_innocent() {
        assert_eq!(found(32 * MIB, 64 * MIB, HolderKind::View), 0);
        assert_eq!(found(8, 4 * KIB, HolderKind::View), 0);
        assert_eq!(found(8, 512 * KIB, HolderKind::View), 0);
    }

    #[test]
    fn what_an_exception_holds_is_the_exceptions_finding() {
        assert_eq!(found(40, 64 * MIB, HolderKind::Exception), 0);
    }
}
