//! DPM102: the CPU did the work although there is a GPU.

use super::facts::Facts;
use super::place::Place;
use super::surroundings::Surroundings;
use super::{Explanation, Finding, RuleDoc, Severity, Value};
use crate::kind::DeviceId;

pub(super) static DOC: RuleDoc = RuleDoc {
    code: "DPM102",
    name: "default-is-cpu",
    severity: Severity::Warning,
    what: "Fires when everything was allocated on CPU devices, the default device is a CPU, and either the operating
system shows a GPU that SYCL does not, or a variable that SYCL ignores asked for a GPU. A program that is given a
well-formed `ONEAPI_DEVICE_SELECTOR` gets what it asked for and is left alone, and so is one that uses a GPU too.",
    explanation: Some(Explanation {
        why: "The program is right and slow: SYCL falls back to the CPU without a word.",
        example: "
# a GPU is there, but its Level Zero driver is not installed
x = dpnp.ones(1_000_000)
",
        instead: "
# install what `dpmem doctor` names, and say what is meant, so that it fails where it isn't there
x = dpnp.ones(1_000_000, device=\"gpu\")
",
    }),
};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(around) = facts.surroundings else { return Vec::new() };
    let Some(cpu) = around.devices.iter().find(|device| device.default && device.cpu) else {
        return Vec::new();
    };
    let used =
        |id: DeviceId| facts.snapshot.rows.iter().any(|row| row.device == id && row.totals.alloc_count > 0);
    let gpu_used =
        around.devices.iter().any(|device| !device.cpu && device.id != DeviceId::NONE && used(device.id));
    if cpu.id == DeviceId::NONE || !used(cpu.id) || gpu_used {
        return Vec::new();
    }
    let Some((reason, advice)) = reason(around) else { return Vec::new() };
    let sites = facts.snapshot.sites.iter().filter(|site| site.device == cpu.id);
    let busiest =
        sites.filter(|site| Place::of(&site.frames).is_some()).max_by_key(|site| site.allocated_bytes);
    vec![Finding {
        rule: &DOC,
        place: busiest.and_then(|site| Place::of(&site.frames)),
        device: cpu.id,
        message: format!("the work ran on the CPU ({}): {reason}", cpu.filter),
        advice,
        evidence: vec![("gpus", Value::Whole(around.hidden_gpus.len() as u64))],
    }]
}

fn reason(around: &Surroundings) -> Option<(String, String)> {
    if let Some(gpu) = around.hidden_gpus.first()
        && (around.selector.is_none() || around.selector_fault.is_some())
    {
        let advice = match &around.remedy {
            Some(remedy) => format!("{remedy}; `dpmem doctor` looks closer"),
            None => "run `dpmem doctor`: it says what keeps SYCL from the GPU".to_string(),
        };
        return Some((format!("the system shows {gpu}"), advice));
    }
    let asked = around.ignored.iter().find(|(_, value)| value.to_ascii_lowercase().contains("gpu"))?;
    let (name, value) = asked;
    if around.selector.is_some() {
        return None;
    }
    let reason = format!("{name}={value} asked for a GPU, but SYCL ignores that variable");
    let advice = if around.devices.iter().any(|device| device.gpu) {
        "set ONEAPI_DEVICE_SELECTOR instead, for example to \"level_zero:gpu\""
    } else {
        "SYCL shows no GPU here: run `dpmem doctor`, and set ONEAPI_DEVICE_SELECTOR instead of the old variable"
    };
    Some((reason, advice.to_string()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::surroundings::SeenDevice;
    use super::super::testing::Run;
    use super::*;
    use crate::kind::Kind;

    fn cpu() -> SeenDevice {
        SeenDevice {
            filter: "opencl:cpu:0".into(),
            id: DeviceId::new(1),
            cpu: true,
            gpu: false,
            default: true,
        }
    }

    fn around() -> Surroundings {
        Surroundings { sycl_used: true, devices: vec![cpu()], ..Surroundings::default() }
    }

    fn found(around: &Surroundings) -> Vec<Finding> {
        let mut run = Run::new();
        let site = run.site(&["zeros"], 8, 1, Kind::Device);
        run.allocate(site, 4096);
        let snapshot = run.snapshot();
        check(&Facts { surroundings: Some(around), ..Facts::of(&snapshot) })
    }

    #[test]
    fn a_gpu_that_sycl_does_not_show() {
        let around = Surroundings { hidden_gpus: vec!["Intel GPU 8086:56a0".into()], ..around() };
        let findings = found(&around);
        assert_eq!(findings[0].place.as_ref().map(|place| place.line), Some(8));
        assert!(findings[0].message.contains("8086:56a0"), "{}", findings[0].message);
        let chosen = Surroundings { selector: Some("*:cpu".into()), ..around };
        assert!(found(&chosen).is_empty(), "the user asked for the CPU");
    }

    #[test]
    fn a_gpu_that_was_asked_for_in_vain() {
        let filter = |value: &str| vec![("SYCL_DEVICE_FILTER".to_string(), value.to_string())];
        assert_eq!(found(&Surroundings { ignored: filter("level_zero:gpu"), ..around() }).len(), 1);
        assert!(found(&Surroundings { ignored: filter("opencl:cpu"), ..around() }).is_empty());
    }

    #[test]
    fn a_machine_without_a_gpu_is_innocent() {
        assert!(found(&around()).is_empty());
        let snapshot = crate::Snapshot::default();
        let around = Surroundings { hidden_gpus: vec!["a GPU".into()], ..around() };
        assert!(check(&Facts { surroundings: Some(&around), ..Facts::of(&snapshot) }).is_empty(), "no work");
    }
}
