//! The pool and the limits for Python, and what only Python can do in a shortage.

use std::sync::{Mutex, PoisonError};

use dpmem_core::pool::{PoolReading, Rescue};
use dpmem_core::{DeviceId, Size};
use dpmem_hook::{Shortage, Stage};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::accounting::newest;

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hook_remove, module)?)?;
    module.add_function(wrap_pyfunction!(size_parse, module)?)?;
    module.add_function(wrap_pyfunction!(pool_configure, module)?)?;
    module.add_function(wrap_pyfunction!(pool_cache, module)?)?;
    module.add_function(wrap_pyfunction!(pool_limit, module)?)?;
    module.add_function(wrap_pyfunction!(pool_limit_of, module)?)?;
    module.add_function(wrap_pyfunction!(pool_unlimited, module)?)?;
    module.add_function(wrap_pyfunction!(pool_empty, module)?)?;
    module.add_function(wrap_pyfunction!(pool_status, module)?)?;
    module.add_function(wrap_pyfunction!(pool_reading, module)?)?;
    module.add_function(wrap_pyfunction!(pool_reset_peak, module)?)?;
    module.add_function(wrap_pyfunction!(pool_adopt, module)?)?;
    module.add_function(wrap_pyfunction!(pool_poison, module)?)?;
    module.add_function(wrap_pyfunction!(pool_on_shortage, module)?)?;
    module.add_function(wrap_pyfunction!(raised_instead, module)?)?;
    module.add_function(wrap_pyfunction!(hook_entry, module)?)?;
    module.add_function(wrap_pyfunction!(pool_places, module)?)?;
    module.add_function(wrap_pyfunction!(device_room, module)?)?;
    module.add_function(wrap_pyfunction!(device_name_at, module)?)
}

/// Takes the hook out, pool and limits included.
#[pyfunction]
fn hook_remove(py: Python<'_>) {
    py.detach(dpmem_hook::remove);
}

/// A size as people type it: bytes, or a share of a device's capacity; the other is None.
#[pyfunction]
fn size_parse(text: &str) -> PyResult<(Option<u64>, Option<f64>)> {
    match Size::parse(text).map_err(PyValueError::new_err)? {
        Size::Bytes(bytes) => Ok((Some(bytes), None)),
        Size::Share(share) => Ok((None, Some(share))),
    }
}

/// Switches caching on or off and sets the limit of every device.
#[pyfunction]
fn pool_configure(py: Python<'_>, caching: bool, limit: Option<&str>) -> PyResult<()> {
    let limit = limit.map(Size::parse).transpose().map_err(PyValueError::new_err)?;
    py.detach(|| dpmem_hook::pool_configure(caching, limit));
    Ok(())
}

/// Switches caching on or off and leaves the limits as they are.
#[pyfunction]
fn pool_cache(py: Python<'_>, caching: bool) {
    py.detach(|| dpmem_hook::pool_cache(caching));
}

fn device_of(name: &str) -> PyResult<DeviceId> {
    let device = dpmem_hook::devices().named(name);
    device
        .ok_or_else(|| PyRuntimeError::new_err(format!("device `{name}` has not been seen by the hook yet")))
}

/// Sets the limit of a device; the one before.
#[pyfunction]
fn pool_limit(py: Python<'_>, device: &str, limit: Option<u64>) -> PyResult<Option<u64>> {
    let device = device_of(device)?;
    Ok(py.detach(|| dpmem_hook::pool_limit(device, limit)))
}

/// The limit of a device that is in force.
#[pyfunction]
fn pool_limit_of(py: Python<'_>, device: &str) -> Option<u64> {
    let device = dpmem_hook::devices().named(device)?;
    py.detach(|| dpmem_hook::pool_limit_of(device))
}

/// The devices that the limit for all devices does not hold for, because their capacity is unknown; a device without a
/// name is None.
#[pyfunction]
fn pool_unlimited(py: Python<'_>) -> Vec<Option<String>> {
    let devices = py.detach(dpmem_hook::pool_unlimited);
    devices.into_iter().map(|device| dpmem_hook::devices().name_of(device)).collect()
}

/// Gives what is cached back; the bytes.
#[pyfunction]
fn pool_empty(py: Python<'_>) -> u64 {
    py.detach(dpmem_hook::pool_empty)
}

/// Whether requests go through the pool, whether freed blocks are kept, and whether that was asked for in vain.
#[pyfunction]
fn pool_status(py: Python<'_>) -> (bool, bool, bool) {
    let status = py.detach(dpmem_hook::pool_status);
    (status.on, status.caching, status.impossible)
}

/// The numbers of a device, of all if None.
#[pyfunction]
fn pool_reading<'py>(py: Python<'py>, device: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
    let reading = match device {
        None => dpmem_hook::pool_reading(None),
        Some(name) => dpmem_hook::devices()
            .named(name)
            .map_or_else(PoolReading::default, |device| dpmem_hook::pool_reading(Some(device))),
    };
    let answer = PyDict::new(py);
    answer.set_item("limit_bytes", reading.limit_bytes)?;
    answer.set_item("reserved_bytes", reading.reserved_bytes)?;
    answer.set_item("peak_reserved_bytes", reading.peak_reserved_bytes)?;
    answer.set_item("cached_bytes", reading.cached_bytes)?;
    answer.set_item("in_use_bytes", reading.in_use_bytes)?;
    answer.set_item("peak_in_use_bytes", reading.peak_in_use_bytes)?;
    answer.set_item("hits", reading.hits)?;
    answer.set_item("misses", reading.misses)?;
    answer.set_item("trims", reading.trims)?;
    answer.set_item("taken_beyond_bytes", reading.beyond.taken_bytes)?;
    answer.set_item("given_beyond_bytes", reading.beyond.given_bytes)?;
    for rescue in Rescue::ALL {
        answer.set_item(format!("rescues_by_{}", rescue.name()), reading.rescues[rescue as usize])?;
    }
    Ok(answer)
}

/// Starts the peak of what is reserved on a device anew.
#[pyfunction]
fn pool_reset_peak(device: &str) {
    if let Some(device) = dpmem_hook::devices().named(device) {
        dpmem_hook::pool_reset_peak(device);
    }
}

/// Has the pool count the blocks in use that the newest recording knows.
#[pyfunction]
fn pool_adopt(py: Python<'_>) -> PyResult<()> {
    let recording = newest()?;
    py.detach(|| {
        let blocks = recording.ledger.blocks();
        let all: Vec<_> =
            blocks.to_vec().into_iter().map(|(at, b)| (at, b.bytes, b.kind, b.device)).collect();
        dpmem_hook::pool_adopt(&all, |address| blocks.find(address).is_some_and(|(base, _)| base == address));
    });
    Ok(())
}

/// For tests, on devices whose memory the host can write: fills freed blocks with 0xFF.
#[pyfunction]
fn pool_poison(on: bool) {
    dpmem_hook::poison(on);
}

/// For tests and benchmarks: the shim and the original of a function of the runtime, as addresses.
#[pyfunction]
fn hook_entry(name: &str) -> Option<(usize, usize)> {
    dpmem_hook::entry(name)
}

/// For tests and benchmarks: context, device and kind of each place that the pool has blocks of.
#[pyfunction]
fn pool_places() -> Vec<(usize, usize, &'static str)> {
    dpmem_hook::places().into_iter().map(|(context, device, kind)| (context, device, kind.name())).collect()
}

/// What a device can hold, and its largest block.
#[pyfunction]
fn device_room(device: &str) -> (Option<u64>, Option<u64>) {
    dpmem_hook::devices().named(device).map_or((None, None), dpmem_hook::device_room)
}

/// The name of the device with that number, if it has one.
#[pyfunction]
fn device_name_at(index: usize) -> Option<String> {
    dpmem_hook::devices().name_of(DeviceId::new(index))
}

/// A trace function that raises what `decide(frame, event, argument)` answers, if anything, from no frame of its own.
#[pyfunction]
fn raised_instead(
    decide: &Bound<'_, PyAny>,
    frame: &Bound<'_, PyAny>,
    event: &Bound<'_, PyAny>,
    argument: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let answer = decide.call1((frame, event, argument))?;
    if answer.is_none() { Ok(()) } else { Err(PyErr::from_value(answer)) }
}

static ON_SHORTAGE: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Has `call(stage, bytes, kind, device number, by limit, code)` called in a shortage; its truth says whether it is
/// worth another try. None: nobody.
#[pyfunction]
fn pool_on_shortage(py: Python<'_>, call: Option<Py<PyAny>>) {
    let some = call.is_some();
    let before = std::mem::replace(&mut *ON_SHORTAGE.lock().unwrap_or_else(PoisonError::into_inner), call);
    drop(before);
    py.detach(|| dpmem_hook::on_shortage(some.then_some(ask)));
}

fn ask(stage: Stage, shortage: &Shortage) -> bool {
    let asked = Python::try_attach(|py| {
        let slot = ON_SHORTAGE.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(call) = slot.as_ref().map(|call| call.clone_ref(py)) else { return false };
        drop(slot);
        // Whatever is being raised here must not get lost, nor come in between.
        let raised = PyErr::take(py);
        let stage = match stage {
            Stage::Wait => "wait",
            Stage::Collect => "collect",
            Stage::Callbacks => "callbacks",
            Stage::Explain => "explain",
        };
        let Shortage { bytes, kind, device, by_limit, code } = *shortage;
        let answer = call.call1(py, (stage, bytes, kind.name(), device.index(), by_limit, code));
        // Python's side catches what it can; what is left is a fault of ours, and the program's request goes on.
        let answer = answer.is_ok_and(|answer| answer.is_truthy(py).unwrap_or(false));
        if let Some(raised) = raised {
            raised.restore(py);
        }
        answer
    });
    asked.unwrap_or(false)
}
