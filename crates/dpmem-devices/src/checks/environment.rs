//! Variables that are malformed or have no effect.

use super::{Machine, Status, ok, quoted};
use crate::selector::{fault, from_filter};
use crate::{Effect, VARIABLES};

pub(super) fn selector(machine: &Machine) -> (Status, String, String) {
    let Some(value) = machine.variable("ONEAPI_DEVICE_SELECTOR") else {
        return ok("ONEAPI_DEVICE_SELECTOR is not set: every device may be chosen");
    };
    match fault(value) {
        None => ok(format!("ONEAPI_DEVICE_SELECTOR={value} is well-formed")),
        Some(fault) => (
            Status::Failed,
            format!("ONEAPI_DEVICE_SELECTOR={value} is malformed ({fault}): SYCL shows no device at all, or aborts the process"),
            "unset ONEAPI_DEVICE_SELECTOR, or write `backend:devices` as in: export ONEAPI_DEVICE_SELECTOR=level_zero:gpu"
                .to_string(),
        ),
    }
}

pub(super) fn ignored_variables(machine: &Machine) -> (Status, String, String) {
    let ignored = VARIABLES.iter().filter(|variable| variable.effect == Effect::Ignored);
    let set: Vec<_> =
        ignored.filter_map(|variable| Some((variable.name, machine.variable(variable.name)?))).collect();
    if set.is_empty() {
        return ok("no variable is set that SYCL ignores");
    }
    let named: Vec<_> = set.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut advice = format!("unset {}", set.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" "));
    let filter = set.iter().find(|(name, _)| *name == "SYCL_DEVICE_FILTER");
    if let Some(selector) = filter.and_then(|(_, value)| from_filter(value)) {
        advice += &format!("; export ONEAPI_DEVICE_SELECTOR={}", quoted(&selector));
    }
    (Status::Warning, format!("{} has no effect: today's SYCL runtimes ignore it", named.join(", ")), advice)
}
