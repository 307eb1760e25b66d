//! DPM203: a stored exception keeps arrays.

use super::facts::{Facts, HeldBlock, HolderKind, HolderRecord};
use super::held::by_place;
use super::{Explanation, Finding, KIB, RuleDoc, Severity};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM203",
    name: "held-by-exception",
    severity: Severity::Warning,
    what: "Fires for blocks in use at the end that only a stored exception or traceback holds, 64 KiB or more a line. The
exception that ended the program is left alone.",
    explanation: Some(Explanation {
        why: "An exception keeps its traceback, the traceback the frames of every function it came through, and those all
local variables, arrays included.",
        example: "
errors = []
for batch in batches:
    try:
        step(batch)
    except ValueError as error:
        errors.append(error)
",
        instead: "
errors = []
for batch in batches:
    try:
        step(batch)
    except ValueError as error:
        errors.append(error.with_traceback(None))
",
    }),
};

const BYTES_AT_LEAST: u64 = 64 * KIB;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let places = by_place(facts, blamed).into_iter().filter(|(_, held)| held.bytes >= BYTES_AT_LEAST);
    let findings = places.map(|(place, held)| {
        let message = format!(
            "a stored exception keeps the frames it came through and their arrays ({}): {}",
            held.amount(),
            held.paths()
        );
        let advice = "keep what you need of it: `error.with_traceback(None)` or `str(error)`; or call \
                      `traceback.clear_frames(error.__traceback__)`"
            .to_string();
        held.finding(&DOC, place, message, advice)
    });
    findings.collect()
}

fn blamed(block: &HeldBlock) -> Option<&HolderRecord> {
    // The last exception is kept by the interpreter or the notebook, not by the program.
    let kept = |holder: &HolderRecord| holder.notebook || holder.path.starts_with("sys.last_");
    let only = block.holders.iter().all(|holder| holder.kind == HolderKind::Exception || holder.notebook);
    block.holders.iter().find(|holder| !kept(holder)).filter(|_| only)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::MIB;
    use super::super::testing::{Run, held};
    use super::*;
    use crate::kind::Kind;

    fn found(holders: &[(HolderKind, &str)]) -> Vec<Finding> {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 4, 1, Kind::Device);
        run.allocate(site, MIB);
        let (snapshot, blocks) = (run.snapshot(), [held(site, MIB, MIB, holders)]);
        check(&Facts { held: &blocks, ..Facts::of(&snapshot) })
    }

    const STORED: (HolderKind, &str) =
        (HolderKind::Exception, "__main__.errors[0].__traceback__ → step(): work");

    #[test]
    fn a_stored_exception_is_named() {
        let findings = found(&[STORED]);
        assert!(findings[0].message.contains("__main__.errors[0]"), "{findings:?}");
        assert_eq!(findings[0].place.as_ref().map(|place| place.line), Some(4));
    }

    #[test]
    fn arrays_that_something_else_holds_too_are_innocent() {
        assert!(found(&[STORED, (HolderKind::Global, "__main__.work")]).is_empty());
        assert!(found(&[(HolderKind::Exception, "sys.last_value.__traceback__ → main(): x")]).is_empty());
        assert!(found(&[(HolderKind::Exception, "the last traceback → main(): x")]).is_empty());
    }

    #[test]
    fn the_notebook_that_also_keeps_it_does_not_hide_it() {
        let findings = found(&[(HolderKind::Exception, "the last traceback → step(): work"), STORED]);
        assert!(findings[0].message.contains("__main__.errors[0]"), "{findings:?}");
    }
}
