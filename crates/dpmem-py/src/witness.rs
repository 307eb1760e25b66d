//! Has Python look at an operation that the hook can't tell enough about.
//!
//! The hook notices it on a thread that may not take the GIL. So the look is left to the interpreter, which takes
//! it up on the main thread as soon as it can, as it does with signals; the operation is usually still under way then.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

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

fn request() {
    // SAFETY: may be called from any thread, with the GIL or without; if the queue is full nothing happens. `looking`
    // takes any argument.
    unsafe { ffi::Py_AddPendingCall(Some(looking), std::ptr::null_mut()) };
}

/// Called by the interpreter, which holds the GIL.
extern "C" fn looking(_: *mut c_void) -> c_int {
    Python::attach(|py| {
        // A tracer or profiler of the program would be shown our function; then the operands remain unknown.
        if let Some(look) = LOOK.get().filter(|_| !is_traced(py).unwrap_or(true)) {
            // An error of ours is not the program's; the operands remain unknown.
            let _ = look.call0(py);
        }
    });
    0
}

fn is_traced(py: Python<'_>) -> PyResult<bool> {
    let sys = py.import("sys")?;
    Ok(!sys.call_method0("gettrace")?.is_none() || !sys.call_method0("getprofile")?.is_none())
}
