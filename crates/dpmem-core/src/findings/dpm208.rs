//! DPM208: NumPy arrays sit on USM-host blocks.

use super::facts::{Facts, HolderKind};
use super::held::by_place;
use super::{Finding, MIB, RuleDoc, Severity};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM208",
    name: "host-copy-pins-usm",
    severity: Severity::Warning,
    what: "Fires for a line whose results of `asnumpy()` are still in use at the end: three or more that hold 1 MiB or more
of USM-host memory, or slices of any number of them that show an eighth of it or less. A single result in use is left
alone.",
    explanation: None,
};

const COPIES_AT_LEAST: u64 = 3;
const BYTES_AT_LEAST: u64 = MIB;
const SEEN_PART: u64 = 8;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let places =
        by_place(facts, |block| block.holders.iter().find(|holder| holder.kind == HolderKind::HostCopy));
    let sliced = by_place(facts, |block| {
        let covered = block.covered_bytes.filter(|&covered| covered > 0)?;
        let holder = block.holders.iter().find(|holder| holder.kind == HolderKind::HostCopy)?;
        (covered.saturating_mul(SEEN_PART) <= block.bytes).then_some(holder)
    });
    let pinned = places.into_iter().filter(|(place, held)| {
        let slices = sliced.get(place).map_or(0, |slices| slices.bytes);
        held.bytes >= BYTES_AT_LEAST && held.count >= COPIES_AT_LEAST || slices >= BYTES_AT_LEAST
    });
    let findings = pinned.map(|(place, held)| {
        let message = format!(
            "NumPy arrays from `asnumpy()` sit on USM-host memory ({}): {}",
            held.amount(),
            held.paths()
        );
        let advice =
            "copy what is kept, so that the pinned block can go: `dpnp.asnumpy(x).copy()`".to_string();
        held.finding(&DOC, place, message, advice)
    });
    findings.collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::{Run, held};
    use super::*;
    use crate::kind::Kind;

    fn found(count: usize, bytes: u64, covered: u64) -> usize {
        let mut run = Run::new();
        let site = run.site(&["_copy_to_numpy", "asnumpy"], 4, 1, Kind::Host);
        run.allocate(site, bytes);
        let blocks =
            vec![held(site, bytes, covered, &[(HolderKind::HostCopy, "__main__.results[0]")]); count];
        let snapshot = run.snapshot();
        check(&Facts { held: &blocks, ..Facts::of(&snapshot) }).len()
    }

    #[test]
    fn collected_copies_and_a_slice_are_found_and_one_copy_is_not() {
        assert_eq!(found(4, MIB, MIB), 1);
        assert_eq!(found(1, 8 * MIB, 8 * MIB), 0);
        assert_eq!(found(1, 8 * MIB, 80), 1);
        assert_eq!(found(4, 100, 100), 0);
    }
}
