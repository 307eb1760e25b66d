//! Starting and stopping the hook, and naming what it saw.

use dpmem_core::{DeviceId, Kind};
use dpmem_hook::{BlockOwner, Fault, Phase};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::calls;

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hook_arm, module)?)?;
    module.add_function(wrap_pyfunction!(hook_come_in, module)?)?;
    module.add_function(wrap_pyfunction!(hook_start_now, module)?)?;
    module.add_function(wrap_pyfunction!(hook_prove, module)?)?;
    module.add_function(wrap_pyfunction!(hook_stop, module)?)?;
    module.add_function(wrap_pyfunction!(hook_status, module)?)?;
    module.add_function(wrap_pyfunction!(hook_runtime_is_up, module)?)?;
    module.add_function(wrap_pyfunction!(hook_adopt, module)?)?;
    module.add_function(wrap_pyfunction!(hook_inject, module)?)?;
    module.add_function(wrap_pyfunction!(device_observe, module)?)?;
    module.add_function(wrap_pyfunction!(device_name, module)?)?;
    module.add_function(wrap_pyfunction!(device_unnamed, module)?)?;
    module.add_function(wrap_pyfunction!(reference_start, module)?)?;
    module.add_function(wrap_pyfunction!(reference_mark, module)?)
}

fn runtime_error(error: dpmem_hook::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Records from the next USM call on. Brings nothing of SYCL up.
#[pyfunction]
fn hook_arm(py: Python<'_>, late: bool) -> PyResult<()> {
    py.detach(|| dpmem_hook::arm(late)).map_err(runtime_error)
}

/// Puts the shims in now if they wait for the next USM call; SYCL is up.
#[pyfunction]
fn hook_come_in(py: Python<'_>) -> PyResult<()> {
    py.detach(dpmem_hook::come_in).map_err(runtime_error)
}

/// Puts the shims in at once, on trial until `hook_prove`.
#[pyfunction]
fn hook_start_now(py: Python<'_>) -> PyResult<()> {
    py.detach(dpmem_hook::start_now).map_err(runtime_error)
}

/// Compares with the probes made: (device, host, shared). False: make them again.
#[pyfunction]
fn hook_prove(py: Python<'_>, expected: [u64; 3]) -> PyResult<bool> {
    py.detach(|| dpmem_hook::prove(expected)).map_err(runtime_error)
}

/// Ends the recording and takes the shims out.
#[pyfunction]
fn hook_stop(py: Python<'_>) {
    py.detach(dpmem_hook::stop);
}

/// What there is to say about the hook.
#[pyfunction]
fn hook_status(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let status = py.detach(dpmem_hook::status);
    let phase = match status.phase {
        Phase::Idle => "idle",
        Phase::Armed => "armed",
        Phase::Installed => "installed",
        Phase::Failed => "failed",
    };
    let answer = PyDict::new(py);
    answer.set_item("phase", phase)?;
    answer.set_item("mechanism", status.mechanism)?;
    answer.set_item("gap", status.gap)?;
    answer.set_item("reason", status.reason.map(|reason| reason.to_string()))?;
    answer.set_item("proved", status.proved)?;
    answer.set_item("unseen", status.unseen)?;
    answer.set_item("faults", status.faults)?;
    answer.set_item("fault", status.fault)?;
    answer.set_item("recording", status.recording)?;
    Ok(answer)
}

/// Whether SYCL is up in this process.
#[pyfunction]
fn hook_runtime_is_up(py: Python<'_>) -> bool {
    py.detach(dpmem_hook::runtime_is_up)
}

/// Enters a block that existed before: its address, size and kind, the name of the device of a queue that it is used
/// with, and a call that asks the runtime about it.
#[pyfunction]
fn hook_adopt(
    py: Python<'_>,
    address: usize,
    bytes: u64,
    kind: &str,
    device: &str,
    ask: Py<PyAny>,
) -> PyResult<()> {
    let kind = Kind::from_name(kind)
        .ok_or_else(|| PyValueError::new_err(format!("expected a USM kind, got `{kind}`")))?;
    // What it answers, or that it can't, is nothing to us.
    let (_, heard) = dpmem_hook::observe_block(|| calls::call(ask.bind(py), &PyTuple::empty(py)));
    let device = device_of_block(kind, device, heard);
    dpmem_hook::adopt(address, bytes, kind, device).map_err(runtime_error)
}

/// A queue may be that of another device of the context. OpenCL's adapter, though, names the first device of a context
/// whatever it is asked about, so the queue's device is the better answer there.
fn device_of_block(kind: Kind, named: &str, heard: Option<BlockOwner>) -> DeviceId {
    let told = match heard {
        Some(block) if kind == Kind::Host => return block.context,
        Some(block) if !named.starts_with("opencl:") => block.told,
        _ => DeviceId::NONE,
    };
    if told != DeviceId::NONE {
        return told;
    }
    dpmem_hook::devices().named(named).unwrap_or(DeviceId::NONE)
}

/// For tests: orders a fault, "panic" (at the `after`-th event from now), "no-symbols", "no-way-in", "dead-table",
/// "no-markers" or "no-capacity".
#[pyfunction]
#[pyo3(signature = (fault, after = 1))]
fn hook_inject(fault: &str, after: usize) -> PyResult<()> {
    dpmem_hook::inject(match fault {
        "panic" => Fault::PanicAt(after),
        "no-symbols" => Fault::NoSymbols,
        "no-way-in" => Fault::NoWayIn,
        "dead-table" => Fault::DeadTable,
        "no-markers" => Fault::NoMarkers,
        "no-capacity" => Fault::NoCapacity,
        _ => return Err(PyValueError::new_err(format!("expected the name of a fault, got `{fault}`"))),
    });
    Ok(())
}

/// Calls `ask()` and says which device handle the runtime was asked about meanwhile: (answer, handle), handle 0 for none.
#[pyfunction]
fn device_observe(py: Python<'_>, ask: Py<PyAny>) -> PyResult<(Py<PyAny>, usize)> {
    let (answer, handle) = dpmem_hook::observe_device(|| calls::call(ask.bind(py), &PyTuple::empty(py)));
    Ok((answer?.unbind(), handle))
}

/// Names a device.
#[pyfunction]
fn device_name(handle: usize, name: &str) {
    dpmem_hook::devices().name(handle, name);
}

/// A handle of each device without a name.
#[pyfunction]
fn device_unnamed() -> Vec<usize> {
    dpmem_hook::devices().unnamed()
}

/// For tests: keeps a naive list of all events from now on.
#[pyfunction]
fn reference_start() {
    dpmem_hook::reference_start();
}

/// For tests: marks the moment at which the shims come in with a line on stdout and stderr.
#[pyfunction]
fn reference_mark() {
    dpmem_hook::mark_begin();
}
