//! DPM104: arrays of different queues meet in one operation.

use super::facts::Facts;
use super::surroundings::{Cause, QueuedArray};
use super::{Finding, RuleDoc, Severity, Value};
use crate::kind::DeviceId;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM104",
    name: "mixed-queues",
    severity: Severity::Error,
    what: "Fires when a program dies because arrays of different queues meet in one operation. Says which arrays, on
which queue each is, and which line made it.",
    explanation: None,
};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(failure) = facts.surroundings.and_then(|around| around.failure.as_ref()) else {
        return Vec::new();
    };
    let Cause::Mix(arrays) = &failure.cause else { return Vec::new() };
    let message = if arrays.is_empty() {
        "arrays of different queues meet in one operation".to_string()
    } else {
        let listed: Vec<_> = arrays.iter().map(described).collect();
        format!("arrays of different queues meet in one operation: {}", listed.join("; "))
    };
    let name = |index: usize, fallback: &'static str| {
        arrays.get(index).and_then(|array| array.name.clone()).unwrap_or_else(|| fallback.to_string())
    };
    let (one, other) = (name(0, "a"), name(1, "b"));
    let advice = format!(
        "make both with `sycl_queue={one}.sycl_queue`, or move one over before the operation: \
         `{other}.to_device({one}.sycl_queue)`"
    );
    let queues = arrays.iter().map(|array| array.queue).max().unwrap_or(0);
    let evidence =
        vec![("error", Value::Text(failure.text.clone())), ("queue_count", Value::Whole(u64::from(queues)))];
    vec![Finding {
        rule: &DOC,
        place: failure.place.clone(),
        device: DeviceId::NONE,
        message,
        advice,
        evidence,
    }]
}

fn described(array: &QueuedArray) -> String {
    let name = array.name.as_ref().map_or("an array".to_string(), |name| format!("`{name}`"));
    let made = array.made.as_ref().map_or(String::new(), |place| {
        let file = place.file.rsplit('/').next().unwrap_or(&place.file);
        format!(", made at {file}:{}", place.line)
    });
    format!("{name} on queue {} of {}{made}", array.queue, array.device)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Place;
    use super::super::surroundings::{Failure, Surroundings};
    use super::*;

    fn found(arrays: Vec<QueuedArray>) -> Finding {
        let failure = Failure { text: "no".into(), place: None, cause: Cause::Mix(arrays) };
        let around = Surroundings { sycl_used: true, failure: Some(failure), ..Surroundings::default() };
        let snapshot = crate::Snapshot::default();
        let mut findings = check(&Facts { surroundings: Some(&around), ..Facts::of(&snapshot) });
        assert_eq!(findings.len(), 1);
        findings.remove(0)
    }

    #[test]
    fn the_arrays_are_named_with_their_queues_and_lines() {
        let array = |name: &str, queue, line| QueuedArray {
            name: Some(name.to_string()),
            queue,
            device: "opencl:cpu:0".to_string(),
            made: Some(Place { file: "/home/x/a.py".into(), line }),
        };
        let finding = found(vec![array("left", 1, 3), array("right", 2, 4)]);
        assert!(
            finding.message.contains("`left` on queue 1 of opencl:cpu:0, made at a.py:3"),
            "{}",
            finding.message
        );
        assert!(finding.advice.contains("`right.to_device(left.sycl_queue)`"), "{}", finding.advice);
    }

    #[test]
    fn arrays_that_nobody_could_name_are_still_a_finding() {
        let nameless = QueuedArray { name: None, queue: 1, device: "opencl:cpu:0".into(), made: None };
        assert!(found(vec![nameless]).message.contains("an array on queue 1"));
        assert!(found(Vec::new()).advice.contains("to_device"));
    }
}
