//! Waiting with a bound for something in Python that may take for ever.

use std::sync::mpsc;
use std::time::Duration;

use pyo3::prelude::*;

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(bounded_call, module)?)
}

/// Calls `work()` on a thread of its own and waits at most `seconds` for it; says whether it finished. What it raises is
/// dropped. Not a Python thread, because late in an interpreter's life none can be started.
#[pyfunction]
fn bounded_call(py: Python<'_>, work: Py<PyAny>, seconds: f64) -> bool {
    let (done, finished) = mpsc::channel();
    let thread = std::thread::Builder::new().name("dpmem-wait".into()).spawn(move || {
        Python::attach(|py| {
            if let Err(error) = work.call0(py) {
                drop(error);
            }
            drop(work);
        });
        let _ = done.send(());
    });
    // A thread that takes too long is left behind: it waits for the runtime, which ends with the process.
    thread.is_ok()
        && py.detach(move || {
            finished.recv_timeout(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))).is_ok()
        })
}
