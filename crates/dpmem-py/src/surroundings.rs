//! Devices, variables and the program's end, from Python's words to those of the rules.

use dpmem_core::DeviceId;
use dpmem_core::findings::{Cause, Failure, Place, QueuedArray, SeenDevice, Surroundings};
use pyo3::prelude::*;

/// A device, as `_surroundings.py` saw it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct DeviceWords {
    filter: String,
    r#type: String,
    default: bool,
}

/// An operand, as `_surroundings.py` saw it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ArrayWords {
    name: Option<String>,
    queue: u32,
    device: String,
    made: Option<(String, u32)>,
}

/// What the program died of, as `_surroundings.py` saw it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FailureWords {
    text: String,
    place: Option<(String, u32)>,
    kind: String,
    filter: Option<String>,
    arrays: Vec<ArrayWords>,
}

/// Everything that `_surroundings.py` gathered.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SurroundingsFacts {
    devices: Vec<DeviceWords>,
    hidden_gpus: Vec<String>,
    ignored: Vec<(String, String)>,
    selector: Option<String>,
    selector_fault: Option<String>,
    remedy: Option<String>,
    failure: Option<FailureWords>,
}

impl SurroundingsFacts {
    pub(crate) fn surroundings(&self) -> Surroundings {
        Surroundings {
            sycl_used: true,
            devices: self.devices.iter().map(device).collect(),
            hidden_gpus: self.hidden_gpus.clone(),
            ignored: self.ignored.clone(),
            selector: self.selector.clone(),
            selector_fault: self.selector_fault.clone(),
            remedy: self.remedy.clone(),
            failure: self.failure.as_ref().map(failure),
        }
    }
}

fn device(words: &DeviceWords) -> SeenDevice {
    SeenDevice {
        filter: words.filter.clone(),
        id: dpmem_hook::devices().named(&words.filter).unwrap_or(DeviceId::NONE),
        cpu: words.r#type == "cpu",
        gpu: words.r#type == "gpu",
        default: words.default,
    }
}

fn failure(words: &FailureWords) -> Failure {
    let cause = match (words.kind.as_str(), &words.filter) {
        ("mix", _) => Cause::Mix(words.arrays.iter().map(array).collect()),
        (_, Some(filter)) => Cause::Device(filter.clone()),
        _ => Cause::AnyDevice,
    };
    Failure { text: words.text.clone(), place: words.place.as_ref().map(place), cause }
}

fn array(words: &ArrayWords) -> QueuedArray {
    QueuedArray {
        name: words.name.clone(),
        queue: words.queue,
        device: words.device.clone(),
        made: words.made.as_ref().map(place),
    }
}

fn place((file, line): &(String, u32)) -> Place {
    Place { file: file.as_str().into(), line: *line }
}
