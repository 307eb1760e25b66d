//! What the machine has: GPUs, readings of free memory with their source and how far to trust them, and what can be
//! told about a missing device from files alone.
//!
//! Limits: nothing here knows SYCL or brings it up; that is Python's, in a child process. Everything that parses takes
//! a [`Root`], so that captured trees of other machines are tests, and answers bad or hostile content with an error. A
//! number that can't be trusted is `None` with a reason. Threads: no state but the two libraries that are loaded once
//! ([`nvml`], [`sysman`]).

pub mod checks;
mod climb;
mod error;
pub mod fdinfo;
mod gpu;
pub mod host;
mod ioctl;
pub mod nvml;
mod pci;
mod processes;
mod reading;
pub mod regions;
mod root;
pub mod selector;
pub mod sysman;
pub mod usage;
mod variables;

pub use climb::Climb;
pub use error::Error;
pub use gpu::{Wanted, reading};
pub use pci::{Address, Gpu, gpu_at, gpus};
pub use processes::{ProcessMemory, process_memory};
pub use reading::{Reading, Trust};
pub use root::Root;
pub use variables::{Effect, VARIABLES, Variable, variable};
