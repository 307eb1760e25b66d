//! DPM101: there is no SYCL device.

use super::facts::Facts;
use super::surroundings::Cause;
use super::{Explanation, Finding, RuleDoc, Severity, Value};
use crate::kind::DeviceId;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM101",
    name: "no-device",
    severity: Severity::Error,
    what: "Fires when a program dies because it asked for a device and SYCL shows none at all. The advice is what files
and variables tell; `dpmem doctor` looks closer.",
    explanation: Some(Explanation {
        why: "Nothing can be allocated. Either no driver is installed or registered, or a variable hides every device.",
        example: "
# ONEAPI_DEVICE_SELECTOR=level_zero:gpu on a machine without a GPU
x = dpnp.ones(3)
",
        instead: "
# unset ONEAPI_DEVICE_SELECTOR, or install the driver that `dpmem doctor` names
x = dpnp.ones(3)
",
    }),
};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(around) = facts.surroundings else { return Vec::new() };
    let Some(failure) = &around.failure else { return Vec::new() };
    if !around.devices.is_empty() || matches!(failure.cause, Cause::Mix(_)) {
        return Vec::new();
    }
    let mut message = "no SYCL device is visible".to_string();
    if let Some(selector) = &around.selector {
        message += &format!("; ONEAPI_DEVICE_SELECTOR={selector} is in force");
    }
    for gpu in &around.hidden_gpus {
        message += &format!("; the system shows {gpu}");
    }
    let advice = match &around.remedy {
        Some(remedy) => format!("{remedy}; `dpmem doctor` looks closer"),
        None => "run `dpmem doctor`: it says which driver or variable is missing".to_string(),
    };
    let evidence = vec![("error", Value::Text(failure.text.clone()))];
    vec![Finding {
        rule: &DOC,
        place: failure.place.clone(),
        device: DeviceId::NONE,
        message,
        advice,
        evidence,
    }]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::surroundings::{Failure, SeenDevice, Surroundings};
    use super::*;

    fn found(around: &Surroundings) -> Vec<Finding> {
        let snapshot = crate::Snapshot::default();
        check(&Facts { surroundings: Some(around), ..Facts::of(&snapshot) })
    }

    fn dead(cause: Cause) -> Surroundings {
        let failure = Failure { text: "Default device is unavailable.".to_string(), place: None, cause };
        Surroundings { sycl_used: true, failure: Some(failure), ..Surroundings::default() }
    }

    #[test]
    fn a_program_without_a_device() {
        let mut around = dead(Cause::AnyDevice);
        around.selector = Some("*:gpu".to_string());
        around.remedy = Some("unset ONEAPI_DEVICE_SELECTOR".to_string());
        let findings = found(&around);
        assert!(findings[0].message.contains("*:gpu"), "{}", findings[0].message);
        assert!(findings[0].advice.starts_with("unset ONEAPI_DEVICE_SELECTOR"), "{}", findings[0].advice);
        assert_eq!(found(&dead(Cause::Device("gpu".to_string()))).len(), 1);
    }

    #[test]
    fn a_program_that_has_one_or_ends_well_is_innocent() {
        let cpu = SeenDevice {
            filter: "opencl:cpu:0".into(),
            id: DeviceId::NONE,
            cpu: true,
            gpu: false,
            default: true,
        };
        assert!(found(&Surroundings { devices: vec![cpu], ..dead(Cause::Device("gpu".into())) }).is_empty());
        assert!(found(&Surroundings::default()).is_empty());
        assert!(found(&dead(Cause::Mix(Vec::new()))).is_empty());
    }
}
