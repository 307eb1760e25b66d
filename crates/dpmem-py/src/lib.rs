//! `dpmem._native`: everything that Python asks of Rust. The Python package in `python/dpmem` is the face; nothing in
//! here is meant to be called by users.

mod accounting;
mod calls;
mod cli;
mod devices;
mod findings;
mod frames;
mod holders;
mod live;
mod objects;
mod pool;
mod process;
mod report;
mod stream;
mod surroundings;
mod tracking;
mod witness;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    accounting::register(module)?;
    cli::register(module)?;
    devices::register(module)?;
    frames::register(module)?;
    holders::register(module)?;
    pool::register(module)?;
    objects::register(module)?;
    process::register(module)?;
    report::register(module)?;
    stream::register(module)?;
    tracking::register(module)?;
    witness::register(module)
}
