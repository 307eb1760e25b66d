//! Lets the hook learn where the running interpreter keeps its frames.

use dpmem_core::LibraryPaths;
use dpmem_hook::frames::{self, Samples};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(frames_calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(frames_close, module)?)?;
    module.add_function(wrap_pyfunction!(frames_configure, module)?)?;
    module.add_function(wrap_pyfunction!(frames_here, module)?)
}

/// Calibrates; must be called at least three Python frames deep, with some code of a module. Raises RuntimeError with the
/// reason if it fails.
#[pyfunction]
fn frames_calibrate(module: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = module.py();
    let name = module.getattr("co_qualname").or_else(|_| module.getattr("co_name"))?;
    let bytes = PyBytes::new(py, Samples::BYTES);
    let strings =
        ["calibrate", "caf\u{e9}", "\u{65e5}\u{672c}", "\u{1f600}!"].map(|text| PyString::new(py, text));
    let [ascii, latin, wide, widest] = [0, 1, 2, 3].map(|n: usize| strings[n].as_ptr() as usize);
    let (bytes, module) = (bytes.as_ptr() as usize, name.as_ptr() as usize);
    let samples = Samples { ascii, latin, wide, widest, bytes, module };
    // SAFETY: `py` shows that the GIL is held, and the objects keep the samples alive until after the call.
    unsafe { frames::calibrate(&samples) }.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Stops reading frames, because the interpreter is about to go.
#[pyfunction]
fn frames_close() {
    frames::close();
}

/// How many frames to keep, and below which folders they are libraries'.
#[pyfunction]
fn frames_configure(depth: usize, libraries: Vec<String>) {
    dpmem_hook::set_stack_depth(depth);
    dpmem_hook::set_libraries(LibraryPaths::new(libraries));
}

/// The calling thread's stack as the hook reads it: (file, line, function, library), innermost first.
#[pyfunction]
fn frames_here(depth: usize) -> Vec<(String, u32, String, bool)> {
    let stack = frames::here(depth);
    stack.into_iter().map(|f| (f.file.to_string(), f.line, f.function.to_string(), f.library)).collect()
}
