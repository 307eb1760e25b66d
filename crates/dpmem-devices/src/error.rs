//! What can go wrong when the machine is asked.

use std::path::PathBuf;

/// Why something could not be read; texts fit after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that could not be read.
    #[error("read `{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Content that is not what it should be.
    #[error("understand {what}: expected {expected}, found `{found}`")]
    Malformed {
        /// What was read.
        what: String,
        /// What it should hold.
        expected: &'static str,
        /// The beginning of what it holds.
        found: String,
    },
    /// A library that is not there or that refused.
    #[error("ask {library}: {message}")]
    Library {
        /// Its name.
        library: &'static str,
        /// What it said.
        message: String,
    },
}

impl Error {
    /// Content that is not what it should be; of `found` only the beginning is kept.
    pub(crate) fn malformed(what: impl Into<String>, expected: &'static str, found: &str) -> Error {
        let found = found.chars().filter(|c| !c.is_control()).take(40).collect();
        Error::Malformed { what: what.into(), expected, found }
    }

    /// Whether the file is simply not there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Error::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }

    /// Whether the system forbade it.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Error::File { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied)
    }
}
