//! Finds device-memory mistakes in Python programs that use dpnp or dpctl, before they run.
//!
//! # Limits
//! One file at a time: what other modules return is unknown, and unknown means silence. The flow analysis knows kinds
//! of values (device array, NumPy array, number, queue, …), dtypes and shapes where the program states them; it
//! proves nothing. Code that may run on either library is not judged.
//!
//! # Layout
//! [`parse`] → [`semantic`] → [`rules`] → findings and edits → `output`. `parse` is the only module that names the
//! parser; `cli` the only one that decides exit codes. No Python, no unsafe code, no network.

mod cli;
mod config;
mod finding;
mod fixes;
mod lint;
mod notebook;
mod output;
mod parse;
mod rules;
mod semantic;
mod source;
mod suppress;
mod walk;

pub use cli::run;
pub use finding::{Safety, Severity};
pub use lint::{FILE_LIMIT, Located, LocatedFix};
pub use parse::ParseError;
pub use rules::{RuleDoc, codes, rule};
pub use source::Position;
