//! Findings of a recording, in the form that the report carries.

use dpmem_core::findings::{self, Facts, FailedRequest, Operand, Place, Promotion, Room, Severity, Value};
use dpmem_core::{DeviceId, Snapshot};
use dpmem_hook::Recording;
use dpmem_report::{self as report, FileSources, SourceLines};
use pyo3::prelude::*;
use serde_json::{Map, Number};

use crate::report::RunFacts;
use crate::surroundings::SurroundingsFacts;

/// An operand, as `_operands.py` saw it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct OperandFacts {
    type_name: String,
    dtype: Option<String>,
    dimensions: Option<u32>,
}

/// An operation, as `_operands.py` saw it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PromotionFacts {
    file: String,
    line: u32,
    operation: String,
    operands: [OperandFacts; 2],
}

impl PromotionFacts {
    fn promotion(&self) -> Promotion {
        let operand = |seen: &OperandFacts| Operand {
            type_name: seen.type_name.clone(),
            dtype: seen.dtype.clone(),
            dimensions: seen.dimensions,
        };
        Promotion {
            place: Place { file: self.file.as_str().into(), line: self.line },
            operation: self.operation.clone(),
            operands: [operand(&self.operands[0]), operand(&self.operands[1])],
        }
    }
}

/// Requests of one line that failed, as `_failure.py` kept them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct FailureFacts {
    file: Option<String>,
    line: Option<u32>,
    device: Option<String>,
    by_limit: bool,
    count: u64,
    requested_bytes: u64,
    limit_bytes: Option<u64>,
    max_alloc_bytes: Option<u64>,
    held_most: Option<String>,
}

impl FailureFacts {
    fn request(&self) -> FailedRequest {
        let place = self.file.as_deref().zip(self.line);
        let device = self.device.as_deref().and_then(|name| dpmem_hook::devices().named(name));
        FailedRequest {
            place: place.map(|(file, line)| Place { file: file.into(), line }),
            device: device.unwrap_or(DeviceId::NONE),
            bytes: self.requested_bytes,
            count: self.count,
            limit_bytes: self.limit_bytes.filter(|_| self.by_limit),
            max_alloc_bytes: self.max_alloc_bytes,
            held_most: self.held_most.clone(),
        }
    }
}

/// How much each device allows that the recording has seen.
fn rooms(recording: &Recording, snapshot: &Snapshot) -> Vec<Room> {
    let mut devices: Vec<DeviceId> = snapshot.rows.iter().map(|row| row.device).collect();
    devices.dedup();
    devices.retain(|&device| device != DeviceId::NONE);
    let room = |device| Room {
        device,
        peak_bytes: recording.ledger.rows(device).reading_on_device().peak.bytes,
        limit_bytes: dpmem_hook::pool_limit_of(device),
        capacity_bytes: dpmem_hook::device_room(device).0,
    };
    devices.into_iter().map(room).collect()
}

/// What the rules find in a recording.
pub(crate) fn found(
    facts: &RunFacts,
    recording: &Recording,
    snapshot: &Snapshot,
    held: &[findings::HeldBlock],
) -> Vec<report::Finding> {
    let operations: Vec<(Place, String)> = facts
        .operations
        .iter()
        .map(|(file, line, name)| (Place { file: file.as_str().into(), line: *line }, name.clone()))
        .collect();
    let failures: Vec<FailedRequest> = facts.failures.iter().map(FailureFacts::request).collect();
    let rooms = rooms(recording, snapshot);
    let promotions: Vec<Promotion> = facts.promotions.iter().map(PromotionFacts::promotion).collect();
    let surroundings = facts.surroundings.as_ref().map(SurroundingsFacts::surroundings);
    let sources = &facts.sources;
    let facts = Facts {
        seconds_per_tick: recording.clock.seconds_per_tick(),
        held,
        promotions: &promotions,
        operations: &operations,
        source: &|file, line| match sources.get(file) {
            Some(lines) => lines.get((line as usize).checked_sub(1)?).cloned(),
            None => FileSources.line(file, line),
        },
        surroundings: surroundings.as_ref(),
        failures: &failures,
        rooms: &rooms,
        ..Facts::of(snapshot)
    };
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
