//! What `dpmem run` needs from the process it shares with the program: running the main module without a
//! frame of ours in its tracebacks, the one moment at which the report is taken, dying as the program would
//! have died, and writing last.
//!
//! Owns no recording and no report; it calls back into Python for those. Rules:
//! - Only the process that called [`ending::process_arm`] reports. A forked child inherits all of this and
//!   each entry point compares process ids first.
//! - The report is taken once: main thread, a thread that calls `os._exit` and the thread that answers a
//!   termination signal compete in [`ending::process_claim`].
//! - No thread of ours exists before SYCL is up (a forking program would be warned about it), unless a
//!   termination signal came; from then on one stands by for signals.

pub(crate) mod ending;
mod output;
mod program;
mod termination;

use pyo3::prelude::*;

/// Registers the functions of this module and its parts.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    program::register(module)?;
    ending::register(module)?;
    output::register(module)
}
