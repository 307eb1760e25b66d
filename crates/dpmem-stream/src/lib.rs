//! Reading that overlaps with computing: a thread fetches pieces of files or memory into buffers that it is lent.
//!
//! Limits: knows bytes, and neither Python nor SYCL nor file formats. Whoever uses it says where bytes lie
//! ([`Block`]), and lends memory ([`Target`]). Absent on purpose: `unsafe`, allocation of what is read into, guessing:
//! a file that is not the one it was, or that has shrunk, is an error that names file and offset.

mod block;
mod error;
mod file;
mod layout;
mod reader;

pub use block::{Block, Order, fill};
pub use error::Error;
pub use file::{FileOrigin, OpenFiles};
pub use reader::{Job, Reader, Target, Ticket};

/// Where bytes come from.
pub trait Origin: Send + Sync {
    /// Reads exactly `into.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// There are no such bytes, or they could not be read.
    fn read(&self, offset: u64, into: &mut [u8], files: &mut OpenFiles) -> Result<(), Error>;
}
