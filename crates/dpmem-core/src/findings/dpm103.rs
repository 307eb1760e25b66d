//! DPM103: a variable or a filter string that chooses nothing.

use super::facts::Facts;
use super::surroundings::{Cause, Surroundings};
use super::{Finding, RuleDoc, Severity, Value};
use crate::kind::DeviceId;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM103",
    name: "selector-ignored",
    severity: Severity::Error,
    what: "Fires when a program that uses SYCL runs with a variable that today's runtimes ignore
(`SYCL_DEVICE_FILTER`, `SYCL_BE`, `SYCL_DEVICE_TYPE`) or with a malformed `ONEAPI_DEVICE_SELECTOR`, and when it dies of
a filter string that no device matches.",
    explanation: None,
};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(around) = facts.surroundings.filter(|around| around.sycl_used) else { return Vec::new() };
    let mut findings: Vec<Finding> =
        around.ignored.iter().map(|(name, value)| finding(None, of_ignored(name, value))).collect();
    if let (Some(selector), Some(fault)) = (&around.selector, &around.selector_fault) {
        findings.push(finding(
            None,
            (
                format!("ONEAPI_DEVICE_SELECTOR={selector} is malformed: {fault}"),
                "write `backend:devices`, several separated by `;`, such as \"level_zero:gpu\" or \"*:cpu\""
                    .to_string(),
            ),
        ));
    }
    if let Some(failure) = &around.failure
        && let Cause::Device(filter) = &failure.cause
    {
        findings.push(Finding {
            place: failure.place.clone(),
            evidence: vec![("error", Value::Text(failure.text.clone()))],
            ..finding(None, of_filter(filter, around))
        });
    }
    findings
}

fn finding(place: Option<super::Place>, (message, advice): (String, String)) -> Finding {
    Finding { rule: &DOC, place, device: DeviceId::NONE, message, advice, evidence: Vec::new() }
}

fn of_ignored(name: &str, value: &str) -> (String, String) {
    (
        format!("{name}={value} has no effect: today's SYCL runtimes ignore it"),
        format!(
            "unset {name} and set ONEAPI_DEVICE_SELECTOR, for example to \"level_zero:gpu\" or \"*:cpu\""
        ),
    )
}

fn of_filter(filter: &str, around: &Surroundings) -> (String, String) {
    let there: Vec<_> = around.devices.iter().map(|device| device.filter.as_str()).collect();
    let listed = if there.is_empty() { "none".to_string() } else { there.join(", ") };
    let advice = match there.first() {
        Some(first) => {
            format!("ask for a device that is there, such as \"{first}\"; `dpmem devices` lists them")
        }
        None => "`dpmem doctor` says why there is no device".to_string(),
    };
    (format!("no device matches the filter string \"{filter}\"; devices here: {listed}"), advice)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Place;
    use super::super::surroundings::{Failure, SeenDevice};
    use super::*;

    fn found(around: &Surroundings) -> Vec<Finding> {
        let snapshot = crate::Snapshot::default();
        check(&Facts { surroundings: Some(around), ..Facts::of(&snapshot) })
    }

    #[test]
    fn variables_without_effect() {
        let around = Surroundings {
            sycl_used: true,
            ignored: vec![("SYCL_BE".into(), "PI_OPENCL".into())],
            selector: Some("gpu".into()),
            selector_fault: Some("`gpu` has no `:`".into()),
            ..Surroundings::default()
        };
        let findings = found(&around);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].message.contains("SYCL_BE=PI_OPENCL") && findings[1].message.contains("no `:`"));
        assert!(found(&Surroundings { sycl_used: false, ..around }).is_empty(), "a program without SYCL");
        let fine =
            Surroundings { sycl_used: true, selector: Some("*:cpu".into()), ..Surroundings::default() };
        assert!(found(&fine).is_empty());
    }

    #[test]
    fn a_filter_string_that_no_device_matches() {
        let place = Some(Place { file: "a.py".into(), line: 3 });
        let failure = Failure { text: "no".into(), place: place.clone(), cause: Cause::Device("gpu".into()) };
        let cpu = SeenDevice {
            filter: "opencl:cpu:0".into(),
            id: DeviceId::NONE,
            cpu: true,
            gpu: false,
            default: true,
        };
        let around = Surroundings {
            sycl_used: true,
            failure: Some(failure),
            devices: vec![cpu],
            ..Surroundings::default()
        };
        let findings = found(&around);
        assert_eq!(findings[0].place, place);
        assert!(findings[0].message.contains("\"gpu\"") && findings[0].message.contains("opencl:cpu:0"));
        assert!(findings[0].advice.contains("\"opencl:cpu:0\""), "{}", findings[0].advice);
    }
}
