//! DPM502: one request was larger than a single allocation may be.

use super::facts::{Facts, FailedRequest};
use super::{Explanation, Finding, RuleDoc, Severity, Value};
use crate::bytes::size;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM502",
    name: "single-allocation-limit",
    severity: Severity::Error,
    what: "Fires for a line whose request failed and was larger than the largest single allocation of the device \
(`max_mem_alloc_size`).",
    explanation: Some(Explanation {
        why: "A device may have room in all and yet not give it in one piece; on many it is a half or a quarter of the \
capacity. Freeing other memory does not help.",
        example: "
table = dpnp.empty((200_000, 50_000))
",
        instead: "
for rows in range(0, 200_000, 10_000):
    part = dpnp.empty((10_000, 50_000))
",
    }),
};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    facts.failures.iter().filter_map(finding).collect()
}

fn finding(failure: &FailedRequest) -> Option<Finding> {
    let largest = failure.max_alloc_bytes.filter(|&largest| failure.bytes > largest)?;
    Some(Finding {
        rule: &DOC,
        place: failure.place.clone(),
        device: failure.device,
        message: format!(
            "{} were asked for in one allocation, and the device gives at most {}",
            size(failure.bytes),
            size(largest)
        ),
        advice: format!("work in chunks of less than max_mem_alloc_size ({})", size(largest)),
        evidence: vec![
            ("requested_bytes", Value::Whole(failure.bytes)),
            ("max_alloc_bytes", Value::Whole(largest)),
            ("count", Value::Whole(failure.count)),
        ],
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Place;
    use super::*;
    use crate::kind::DeviceId;

    fn found(bytes: u64, max_alloc_bytes: Option<u64>) -> Vec<Finding> {
        let failure = FailedRequest {
            place: Some(Place { file: "a.py".into(), line: 7 }),
            device: DeviceId::new(1),
            bytes,
            count: 1,
            limit_bytes: None,
            max_alloc_bytes,
            held_most: None,
        };
        check(&Facts { failures: &[failure], ..Facts::of(&crate::Snapshot::default()) })
    }

    #[test]
    fn a_request_beyond_the_largest_allocation() {
        let findings = found(101, Some(100));
        assert_eq!(findings[0].place.as_ref().map(|place| place.line), Some(7));
        assert!(findings[0].advice.contains("max_mem_alloc_size (100 B)"), "{}", findings[0].advice);
    }

    #[test]
    fn others_that_failed_are_innocent() {
        assert!(found(100, Some(100)).is_empty());
        assert!(found(1 << 50, None).is_empty());
    }
}
