//! Has Python look at an operation that the hook can't tell enough about.
//!
//! The hook notices it on a thread that may not take the GIL. So the look is left to the interpreter, which takes
//! it up on the main thread as soon as it can, as it does with signals; the operation is usually still under way then.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyException, PyMemoryError, PyRecursionError};
use pyo3::ffi;
use pyo3::prelude::*;

/// What is called to look; it takes nothing and returns nothing.
static LOOK: OnceLock<Py<PyAny>> = OnceLock::new();

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(witness_operations, module)?)
}

/// Calls `look` on the main thread soon after a line's operation is worth a look for the first time.
#[pyfunction]
fn witness_operations(look: Py<PyAny>) {
    let _ = LOOK.set(look);
    dpmem_hook::watch_operations(request);
}

/// Whether a look has been asked for and not been taken yet. The queue of such calls is short, and the program's as well.
static ASKED: AtomicBool = AtomicBool::new(false);

fn request() {
    if ASKED.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: may be called from any thread, with the GIL or without; if the queue is full nothing happens. `looking`
    // takes any argument.
    let refused = unsafe { ffi::Py_AddPendingCall(Some(looking), std::ptr::null_mut()) };
    if refused != 0 {
        ASKED.store(false, Ordering::Release);
    }
}

/// Called by the interpreter, which holds the GIL. The answer says whether an exception is raised.
extern "C" fn looking(_: *mut c_void) -> c_int {
    ASKED.store(false, Ordering::Release);
    let answer = Python::try_attach(|py| {
        // A tracer or profiler of the program would be shown our function; then the operation remains unknown.
        let Some(look) = LOOK.get().filter(|_| !is_traced(py).unwrap_or(true)) else { return 0 };
        let Err(error) = look.call0(py) else { return 0 };
        if !is_the_programs(py, &error).unwrap_or(false) {
            return 0;
        }
        error.restore(py);
        -1
    });
    answer.unwrap_or(0)
}

/// Whether an exception came out of a signal handler of the program's, which the interpreter ran inside our function: it
/// goes on to where the program was interrupted. Our own errors end here, and the operation remains unknown.
fn is_the_programs(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    if !error.is_instance_of::<PyException>(py) {
        return Ok(true);
    }
    if error.is_instance_of::<PyRecursionError>(py) || error.is_instance_of::<PyMemoryError>(py) {
        return Ok(false);
    }
    let Some(mut at) = error.traceback(py).map(Bound::into_any) else { return Ok(false) };
    loop {
        let file: String = at.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract()?;
        if !file.ends_with("/dpmem/_operands.py") {
            return Ok(true);
        }
        let next = at.getattr("tb_next")?;
        if next.is_none() {
            return Ok(false);
        }
        at = next;
    }
}

fn is_traced(py: Python<'_>) -> PyResult<bool> {
    Ok(!asked_of_sys(py, c"gettrace")?.is_none() || !asked_of_sys(py, c"getprofile")?.is_none())
}

/// What a function of `sys` answers. An import would call a hook that the program may have put in.
fn asked_of_sys<'py>(py: Python<'py>, name: &CStr) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the GIL is held; the answer is null or borrowed from `sys`, which outlives this call.
    let function = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PySys_GetObject(name.as_ptr())) };
    function.ok_or_else(|| PyException::new_err("`sys` is incomplete"))?.call0()
}
