//! Findings of a recording, in the form that the report carries.

use dpmem_core::findings::{self, Facts, Severity, Value};
use dpmem_core::{DeviceId, Snapshot};
use dpmem_hook::Recording;
use dpmem_report as report;
use serde_json::{Map, Number};

/// What the rules find in a recording.
pub(crate) fn found(recording: &Recording, snapshot: &Snapshot) -> Vec<report::Finding> {
    let facts = Facts { seconds_per_tick: recording.clock.seconds_per_tick(), ..Facts::of(snapshot) };
    findings::judge(&facts).into_iter().map(finding).collect()
}

fn finding(found: findings::Finding) -> report::Finding {
    let place = found.place;
    report::Finding {
        code: found.rule.code.to_string(),
        name: found.rule.name.to_string(),
        severity: match found.rule.severity {
            Severity::Error => report::Severity::Error,
            Severity::Warning => report::Severity::Warning,
            Severity::Note => report::Severity::Note,
        },
        file: place.as_ref().map(|place| place.file.to_string()),
        line: place.map(|place| place.line),
        device: (found.device != DeviceId::NONE)
            .then(|| dpmem_hook::devices().name_of(found.device))
            .flatten(),
        message: found.message,
        advice: found.advice,
        evidence: found
            .evidence
            .into_iter()
            .map(|(key, value)| (key.to_string(), json(value)))
            .collect::<Map<_, _>>(),
    }
}

fn json(value: Value) -> serde_json::Value {
    match value {
        Value::Whole(number) => number.into(),
        Value::Real(number) => {
            Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number)
        }
        Value::Text(text) => text.into(),
    }
}
