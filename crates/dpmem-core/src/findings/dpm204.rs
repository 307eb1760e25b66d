//! DPM204: only a reference cycle keeps arrays.

use super::facts::{Facts, HolderKind};
use super::held::{by_place, only_held_by};
use super::{Explanation, Finding, MIB, RuleDoc, Severity};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM204",
    name: "held-by-cycle",
    severity: Severity::Warning,
    what: "Fires for blocks in use at the end that nothing but a reference cycle holds, 1 MiB or more a line: the program
can't reach them any more, and the cyclic collector hasn't run yet.",
    explanation: Some(Explanation {
        why: "The collector runs when many Python objects have been made. A few large arrays don't make it run, however much
device memory they hold.",
        example: "
class Node:
    def __init__(self):
        self.parent = self
        self.buffer = dpnp.ones(10_000_000)
",
        instead: "
class Node:
    def __init__(self):
        self.parent = weakref.ref(self)
        self.buffer = dpnp.ones(10_000_000)
",
    }),
};

const BYTES_AT_LEAST: u64 = MIB;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let places = by_place(facts, |block| only_held_by(block, HolderKind::Cycle));
    let findings = places.into_iter().filter(|(_, held)| held.bytes >= BYTES_AT_LEAST).map(|(place, held)| {
        let message = format!("only a reference cycle keeps these arrays ({}): {}", held.amount(), held.paths());
        let advice = "break the cycle (`weakref.ref` for the way back, or clear the attribute), or call `gc.collect()` \
                      after such objects are dropped"
            .to_string();
        held.finding(&DOC, place, message, advice)
    });
    findings.collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::{Run, held};
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn cycles_of_one_line_are_summed_up() {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 9, 1, Kind::Device);
        run.allocate(site, MIB);
        let cycle = [(HolderKind::Cycle, "Node.buffer")];
        let snapshot = run.snapshot();
        let found = |blocks: &[_]| check(&Facts { held: blocks, ..Facts::of(&snapshot) });
        let half = || held(site, MIB / 2, MIB / 2, &cycle);
        assert!(found(&[half()]).is_empty(), "less than 1 MiB");
        let findings = found(&[half(), half()]);
        assert!(findings[0].advice.contains("gc.collect"));
        assert!(findings[0].message.contains("2 blocks, 1 MiB"), "{}", findings[0].message);
        let reachable = held(site, 9 * MIB, MIB, &[cycle[0], (HolderKind::Global, "__main__.node")]);
        assert!(found(&[reachable]).is_empty());
    }
}
