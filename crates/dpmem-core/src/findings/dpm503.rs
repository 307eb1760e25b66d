//! DPM503: an allocation failed for lack of memory.

use super::facts::{Facts, FailedRequest};
use super::place::{Place, sites_by_place};
use super::{Explanation, Finding, RuleDoc, Severity, Value};
use crate::bytes::size;
use crate::snapshot::SiteSnapshot;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM503",
    name: "out-of-memory",
    severity: Severity::Error,
    what: "Fires for a line of which an allocation failed for lack of memory: because of the limit that was set, or \
because the runtime had no more. It makes no difference whether the program caught the exception.",
    explanation: Some(Explanation {
        why: "What the line was to compute is missing, and a handler that goes on without a word hides it.",
        example: "
results = []
for batch in batches:
    results.append(model(batch))
",
        instead: "
results = []
for batch in batches:
    results.append(dpnp.asnumpy(model(batch)).copy())
",
    }),
};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let failing = sites_by_place(facts.snapshot, |site| site.out_of_memory_count > 0);
    failing.into_iter().map(|(place, sites)| finding(facts, place, &sites)).collect()
}

fn finding(facts: &Facts<'_>, place: Place, sites: &[&SiteSnapshot]) -> Finding {
    let failed: u64 = sites.iter().map(|site| site.out_of_memory_count).sum();
    let of_line = |failure: &&FailedRequest| failure.place.as_ref() == Some(&place);
    let largest = facts.failures.iter().filter(of_line).max_by_key(|failure| failure.bytes);
    let limit = largest.and_then(|failure| failure.limit_bytes);
    let asked = largest.map_or(String::new(), |failure| format!(" of {}", size(failure.bytes)));
    let why = limit.map_or("the runtime refused".to_string(), |limit| {
        format!("beyond the limit of {} on this process", size(limit))
    });
    // The program's own handler may have let the error go, and what was held is gone by now.
    let held = largest.and_then(|failure| failure.held_most.as_deref());
    let held = held.map_or(String::new(), |held| format!("; {held}"));
    let message = match failed {
        1 => format!("an allocation{asked} failed: {why}{held}"),
        _ => format!("{failed} allocations failed, the largest{asked}: {why}{held}"),
    };
    let mut evidence = vec![("failed_count", Value::Whole(failed))];
    evidence.extend(largest.map(|failure| ("requested_bytes", Value::Whole(failure.bytes))));
    evidence.extend(limit.map(|limit| ("limit_bytes", Value::Whole(limit))));
    Finding {
        rule: &DOC,
        place: Some(place),
        device: sites[0].device,
        message,
        advice: "work in chunks, let go of what is not needed any more, or give the process more room; \
                 dpmem.last_out_of_memory() tells who held what"
            .to_string(),
        evidence,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::testing::Run;
    use super::*;
    use crate::kind::{DeviceId, Kind};

    #[test]
    fn a_line_whose_allocations_failed() {
        let run = Run::new();
        let failing = run.site(&["ones"], 5, 1, Kind::Device);
        run.ledger.failed(failing, true);
        run.ledger.failed(failing, true);
        run.ledger.failed(failing, false);
        let request = FailedRequest {
            place: Some(Place { file: "a.py".into(), line: 5 }),
            device: DeviceId::new(1),
            bytes: 4096,
            count: 2,
            limit_bytes: Some(1024),
            max_alloc_bytes: None,
            held_most: Some("__main__.kept held most then, 1000 B".into()),
        };
        let snapshot = run.snapshot();
        let findings = check(&Facts { failures: &[request], ..Facts::of(&snapshot) });
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place.as_ref().map(|place| place.line), Some(5));
        let message = &findings[0].message;
        assert!(message.contains("2 allocations") && message.contains("limit of 1 KiB"), "{message}");
        assert!(message.ends_with("; __main__.kept held most then, 1000 B"), "{message}");
        let plain = check(&Facts::of(&snapshot));
        assert!(plain[0].message.contains("the runtime refused"), "{}", plain[0].message);
    }

    #[test]
    fn a_request_that_is_wrong_in_itself_is_no_shortage() {
        let run = Run::new();
        run.ledger.failed(run.site(&["ones"], 5, 1, Kind::Device), false);
        assert!(check(&Facts::of(&run.snapshot())).is_empty());
    }

    #[test]
    fn lines_whose_allocations_went_well_are_innocent() {
        let mut run = Run::new();
        let site = run.site(&["ones"], 5, 1, Kind::Device);
        run.allocate(site, 100);
        assert!(check(&Facts::of(&run.snapshot())).is_empty());
    }
}
