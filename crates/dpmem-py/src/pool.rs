//! The pool and the limits for Python, and what only Python can do in a shortage.

use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use dpmem_core::pool::{PoolReading, Rescue};
use dpmem_core::{DeviceId, Size};
use dpmem_hook::{Answer, Shortage, Stage};
use pyo3::exceptions::{PyMemoryError, PyRecursionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::accounting::newest;
use crate::calls;

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
    module.add_function(wrap_pyfunction!(error_ignored, module)?)?;
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
    let reading = py.detach(|| match device {
        None => dpmem_hook::pool_reading(None),
        Some(name) => dpmem_hook::devices()
            .named(name)
            .map_or_else(PoolReading::default, |device| dpmem_hook::pool_reading(Some(device))),
    });
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

/// A trace function that raises what is kept for the thread or what `decide(frame, event, argument)` answers, if anything,
/// from no frame of its own.
#[pyfunction]
fn raised_instead(
    decide: &Bound<'_, PyAny>,
    frame: &Bound<'_, PyAny>,
    event: &Bound<'_, PyAny>,
    argument: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // The interpreter ends the tracing itself when its trace function raises.
    if let Some(kept) = calls::take_kept() {
        return Err(kept);
    }
    let answer = calls::call(decide, &(frame, event, argument).into_pyobject(decide.py())?)?;
    if answer.is_none() { Ok(()) } else { Err(PyErr::from_value(answer)) }
}

/// Tells of an exception as the interpreter does of those that nobody can catch.
#[pyfunction]
fn error_ignored(error: Bound<'_, PyAny>, r#where: &Bound<'_, PyAny>) {
    calls::tell_ignored(PyErr::from_value(error), r#where);
}

/// How many signals in a row may keep Python's side from making way for what the first one's handler has raised.
const INTERRUPTS_MAX: usize = 8;

/// Whom to call, and which thread isn't to be any more.
struct Callee {
    call: Option<Py<PyAny>>,
    leaving: Option<ThreadId>,
}

static ON_SHORTAGE: Mutex<Callee> = Mutex::new(Callee { call: None, leaving: None });

/// Has `call(stage, bytes, kind, device number, by limit, code, raised)` called in a shortage; its truth says whether it
/// is worth another try, or whether what it raised is the program's. None: the calling thread, which takes the interpreter
/// down, is not to come back in; others may be in there now, and go on until the interpreter stops them.
#[pyfunction]
fn pool_on_shortage(py: Python<'_>, call: Option<Py<PyAny>>) {
    let mut callee = ON_SHORTAGE.lock().unwrap_or_else(PoisonError::into_inner);
    if call.is_none() {
        callee.leaving = Some(std::thread::current().id());
        return;
    }
    let before = std::mem::replace(&mut *callee, Callee { call, leaving: None });
    drop(callee);
    drop(before);
    py.detach(|| dpmem_hook::on_shortage(ask));
}

fn callee(py: Python<'_>) -> Option<Py<PyAny>> {
    let callee = ON_SHORTAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_leaving = callee.leaving.is_some_and(|leaving| leaving == std::thread::current().id());
    callee.call.as_ref().filter(|_| !is_leaving).map(|call| call.clone_ref(py))
}

fn ask(stage: Stage, shortage: &Shortage) -> Answer {
    let asked = Python::try_attach(|py| {
        let Some(call) = callee(py) else { return Answer::No };
        // Whatever is being raised here must not get lost, nor come in between.
        let raised = PyErr::take(py);
        let answer = ask_with(call.bind(py), stage, shortage);
        if let Some(raised) = raised {
            raised.restore(py);
        }
        answer
    });
    asked.unwrap_or(Answer::No)
}

fn ask_with(call: &Bound<'_, PyAny>, stage: Stage, shortage: &Shortage) -> Answer {
    let py = call.py();
    let stage = match stage {
        Stage::Begin => "begin",
        Stage::Wait => "wait",
        Stage::Search => "search",
        Stage::Collect => "collect",
        Stage::Callbacks => "callbacks",
        Stage::Explain => "explain",
        Stage::Interrupt => "interrupt",
    };
    let Shortage { bytes, kind, device, by_limit, code } = *shortage;
    let say = |stage: &str, raised: Option<&PyErr>| {
        let raised = raised.map(|error| error.value(py));
        let arguments =
            (stage, bytes, kind.name(), device.index(), by_limit, code, raised).into_pyobject(py)?;
        calls::call(call, &arguments)?.is_truthy()
    };
    let raised = match say(stage, None) {
        Ok(true) => return Answer::Yes,
        Ok(false) => return Answer::No,
        Err(error) => error,
    };
    let Some(raised) = programs_own(py, raised, say) else { return Answer::No };
    calls::keep(py, raised);
    for _ in 0..INTERRUPTS_MAX {
        match say("interrupted", None) {
            Ok(true) => return Answer::Interrupted,
            Ok(false) => break,
            // Another signal has come meanwhile.
            Err(newer) => match programs_own(py, newer, say) {
                Some(newer) => calls::keep(py, newer),
                None => break,
            },
        }
    }
    calls::raise_kept_soon(py);
    Answer::Interrupted
}

/// What came out of Python's side, if it is the program's. That side keeps faults of ours to itself, unless it has no room
/// left to run in. So it is asked about what tells of that, if there is room now.
fn programs_own(
    py: Python<'_>,
    raised: PyErr,
    say: impl Fn(&str, Option<&PyErr>) -> PyResult<bool>,
) -> Option<PyErr> {
    let is_doubtful = |error: &PyErr| {
        error.is_instance_of::<PyRecursionError>(py) || error.is_instance_of::<PyMemoryError>(py)
    };
    if !is_doubtful(&raised) {
        return Some(raised);
    }
    match say("raised", Some(&raised)) {
        Ok(is_the_programs) => is_the_programs.then_some(raised),
        Err(newer) if is_doubtful(&newer) => None,
        Err(newer) => {
            calls::came_after(py, &newer, raised);
            Some(newer)
        }
    }
}
