//! What can go wrong while bytes are fetched.

use std::io;
use std::path::PathBuf;

/// Why bytes could not be fetched; texts fit after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that can't be opened, or not any more.
    #[error("open `{}` to read at byte {offset}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Where reading was to go on.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Another file has the name now.
    #[error("read `{}` at byte {offset}: another file has taken its place since it was opened", path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
        /// Where reading was to go on.
        offset: u64,
    },
    /// A file that ends too soon.
    #[error(
        "read {wanted} bytes of `{}` at byte {offset}: it ends at byte {length}; it has shrunk since it was opened",
        path.display()
    )]
    Short {
        /// The file.
        path: PathBuf,
        /// Where bytes are missing.
        offset: u64,
        /// How many are missing from there on.
        wanted: u64,
        /// Where the file ends.
        length: u64,
    },
    /// A read that the system refused.
    #[error("read `{}` at byte {offset}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A block that reaches beyond what it is to be copied from or to.
    #[error("copy a block: it reaches beyond {what} of {length} bytes")]
    Beyond {
        /// What is too small.
        what: &'static str,
        /// How many bytes it has.
        length: u64,
    },
    /// No memory to put a block in another order.
    #[error(
        "put a block in another order: it takes {bytes} bytes of host memory for a while, which are not to be had; \
         take fewer rows a chunk"
    )]
    Memory {
        /// How many bytes it takes.
        bytes: u64,
    },
    /// The reader was closed before it got to it.
    #[error("read on: the reader is closed")]
    Closed,
    /// The process is a forked child, which has no reader thread.
    #[error("read on: the reader's thread stayed in the process that this one was forked from")]
    Forked,
    /// The thread could not be started.
    #[error("start a thread to read with: {0}")]
    Thread(io::Error),
    /// A fault of ours.
    #[error("read on: a fault in the reader (please report it): {0}")]
    Fault(String),
}

impl Error {
    /// What the system said, if it did.
    #[must_use]
    pub fn system(&self) -> Option<&io::Error> {
        match self {
            Error::Open { source, .. } | Error::Read { source, .. } | Error::Thread(source) => Some(source),
            _ => None,
        }
    }

    /// Whether it is about a file, and not about the caller or the reader.
    #[must_use]
    pub fn is_about_file(&self) -> bool {
        matches!(self, Error::Open { .. } | Error::Replaced { .. } | Error::Short { .. } | Error::Read { .. })
    }
}
