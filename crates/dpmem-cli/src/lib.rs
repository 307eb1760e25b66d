//! The `dpmem` command line as a library: arguments in, validated options out.
//!
//! Owns the grammar of the commands, the texts of `--help`, of usage errors and of `dpmem rule`, the rules for colour
//! and width, and where a report file may be written. It starts no program, reads no environment and never
//! prints: the caller passes the facts in and does the writing.

mod command;
mod destination;
mod machine;
mod plan;
pub mod rules;
mod terminal;

pub use command::{Exit, Outcome, RunOptions, Target, parse};
pub use destination::{Destination, DestinationError, spawned_path};
pub use machine::{DevicesOptions, DoctorOptions, Format, WatchOptions};
pub use plan::PlanOptions;
pub use terminal::{DEFAULT_WIDTH, colour, width};
