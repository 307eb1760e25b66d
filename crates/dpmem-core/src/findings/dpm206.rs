//! DPM206: the notebook keeps arrays.

use super::facts::{Facts, HeldBlock, HolderRecord};
use super::held::by_place;
use super::{Explanation, Finding, MIB, RuleDoc, Severity};

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM206",
    name: "held-by-notebook",
    severity: Severity::Warning,
    what: "Fires for blocks in use that only a notebook's own memory of results holds (`Out`, `_`, `__`, `___`, its hidden
namespaces, the last traceback), 1 MiB or more a line.",
    explanation: Some(Explanation {
        why: "Whatever a cell shows is kept: deleting the variable frees nothing.",
        example: "
x = dpnp.ones(100_000_000)
x
del x
",
        instead: "
x = dpnp.ones(100_000_000)
print(x)
del x
",
    }),
};

const BYTES_AT_LEAST: u64 = MIB;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let places = by_place(facts, blamed);
    let findings =
        places.into_iter().filter(|(_, held)| held.bytes >= BYTES_AT_LEAST).map(|(place, held)| {
            let message = format!(
                "only the notebook's memory of results keeps these arrays ({}): {}",
                held.amount(),
                held.paths()
            );
            let advice =
                "end the cell with `;`, or print the array instead of showing it; `%load_ext dpmem` and \
                      `%dpmem clear` let go of what is kept already"
                    .to_string();
            held.finding(&DOC, place, message, advice)
        });
    findings.collect()
}

/// Letting go of results and of the last traceback would free it.
fn blamed(block: &HeldBlock) -> Option<&HolderRecord> {
    let result = block.holders.iter().find(|holder| holder.path.starts_with("Out["));
    result.or(block.holders.first()).filter(|_| block.holders.iter().all(|holder| holder.notebook))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::facts::HolderKind;
    use super::super::testing::{Run, held};
    use super::*;
    use crate::kind::Kind;

    /// How many findings there are of a block that these hold.
    fn found(holders: &[(HolderKind, &'static str)]) -> usize {
        let mut run = Run::new();
        let site = run.site(&["ones", "ones"], 4, 1, Kind::Device);
        run.allocate(site, MIB);
        let snapshot = run.snapshot();
        check(&Facts { held: &[held(site, MIB, MIB, holders)], ..Facts::of(&snapshot) }).len()
    }

    #[test]
    fn a_shown_result_is_found_unless_a_variable_holds_it_too() {
        let out = (HolderKind::Notebook, "Out[5]");
        assert_eq!(found(&[out]), 1);
        assert_eq!(found(&[]), 0);
        assert_eq!(found(&[out, (HolderKind::Global, "__main__.x")]), 0);
    }

    #[test]
    fn so_is_what_the_last_traceback_keeps() {
        let last = (HolderKind::Exception, "the last traceback → step(): work");
        assert_eq!(found(&[last, (HolderKind::Notebook, "Out[5]")]), 1);
        assert_eq!(
            found(&[last, (HolderKind::Exception, "__main__.errors[0].__traceback__ → step(): work")]),
            0
        );
    }
}
