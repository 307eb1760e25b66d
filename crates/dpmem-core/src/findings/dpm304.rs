//! DPM304: an array grows by joining, step by step.

use super::facts::Facts;
use super::operation::joins;
use super::place::{Place, sites_by_place};
use super::{Finding, KIB, RuleDoc, Severity, Value};
use crate::bytes::size;
use crate::snapshot::SiteSnapshot;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM304",
    name: "grow-by-concatenate",
    severity: Severity::Warning,
    what: "Fires for a line that joins arrays (`concatenate`, `append`, `stack`, `hstack` and their kin) ten times or more
into blocks of which nearly each is larger than the one before, 64 KiB in all or more. Windows of constant length are left alone.",
    explanation: None,
};

const REPEATS_AT_LEAST: u64 = 10;
const BYTES_AT_LEAST: u64 = 64 * KIB;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let places = sites_by_place(facts.snapshot, grows);
    places.into_iter().map(|(place, sites)| finding(place, &sites)).collect()
}

fn grows(site: &SiteSnapshot) -> bool {
    site.alloc_count >= REPEATS_AT_LEAST
        && site.allocated_bytes >= BYTES_AT_LEAST
        && 10 * (site.pattern.rises + 1) >= 9 * site.alloc_count
        && joins(&site.frames).is_some()
}

fn finding(place: Place, sites: &[&SiteSnapshot]) -> Finding {
    let (count, bytes) = (sites[0].alloc_count, sites[0].allocated_bytes);
    let result = sites[0].pattern.last_bytes;
    let function = joins(&sites[0].frames).unwrap_or("concatenate");
    Finding {
        rule: &DOC,
        place: Some(place),
        device: sites[0].device,
        message: format!(
            "`{function}` made {count} blocks, each larger than the one before: {} were allocated for a result of {}",
            size(bytes),
            size(result)
        ),
        advice: "collect the parts in a list and join them once after the loop, or write each into an array of the final \
                 size made beforehand"
            .to_string(),
        evidence: vec![
            ("alloc_count", Value::Whole(count)),
            ("allocated_bytes", Value::Whole(bytes)),
            ("result_bytes", Value::Whole(result)),
        ],
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::kind::Kind;
    use crate::site::FreedBy;

    const CONCATENATE: &[&str] = &["empty", "concat", "concatenate"];

    fn found(library: &[&str], count: u64, bytes: impl Fn(u64) -> u64) -> usize {
        let mut run = Run::new();
        let site = run.site(library, 8, 1, Kind::Device);
        let mut last = None;
        for step in 0..count {
            let block = run.allocate(site, bytes(step));
            if let Some(before) = last.replace(block) {
                run.free(before, FreedBy::Program);
            }
        }
        check(&Facts::of(&run.snapshot())).len()
    }

    #[test]
    fn an_array_that_grows() {
        assert_eq!(found(CONCATENATE, 30, |step| (step + 1) * 8000), 1);
        assert_eq!(found(&["empty", "concat", "concatenate", "append"], 30, |step| (step + 1) * 8000), 1);
    }

    #[test]
    fn constant_windows_few_steps_and_other_functions_are_innocent() {
        assert_eq!(found(CONCATENATE, 30, |_| 80_000), 0);
        assert_eq!(found(CONCATENATE, 5, |step| (step + 1) * 80_000), 0);
        assert_eq!(found(&["empty", "tile"], 30, |step| (step + 1) * 8000), 0);
    }
}
