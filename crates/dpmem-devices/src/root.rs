//! Files of the system below a root folder: `/`, or a captured tree of another machine.
//!
//! Reads are bounded, and what is no regular file is not opened, so a hostile tree can neither fill memory nor hang us.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::Error;

/// No file that is read here has more.
const MAX_BYTES: u64 = 1 << 20;
/// No folder that is listed here has more entries.
const MAX_NAMES: usize = 1 << 16;

/// Where `/proc`, `/sys`, `/dev` and `/etc` lie.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// This machine.
    #[must_use]
    pub fn system() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A captured tree.
    pub fn at(folder: impl Into<PathBuf>) -> Root {
        Root(folder.into())
    }

    /// Whether this is the running machine, which can also be asked by other means than files.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where `inside` (with or without a leading slash) lies.
    #[must_use]
    pub fn path(&self, inside: &str) -> PathBuf {
        self.0.join(inside.trim_start_matches('/'))
    }

    /// A file's content; what is no UTF-8 is replaced.
    ///
    /// # Errors
    /// The file can't be read, or is no regular file.
    pub fn text(&self, inside: &str) -> Result<String, Error> {
        self.read(inside).map_err(|source| Error::File { path: self.path(inside), source })
    }

    fn read(&self, inside: &str) -> std::io::Result<String> {
        let path = self.path(inside);
        // A pipe would block when opened.
        if !std::fs::metadata(&path)?.is_file() {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A file that holds one whole number, decimal or with `0x`.
    ///
    /// # Errors
    /// The file can't be read or holds something else.
    pub fn number(&self, inside: &str) -> Result<u64, Error> {
        let text = self.text(inside)?;
        let word = text.trim();
        let number = match word.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
            None => word.parse(),
        };
        number.map_err(|_| Error::malformed(format!("`{inside}`"), "a whole number", word))
    }

    /// The names in a folder, sorted; empty if there is none.
    #[must_use]
    pub fn names(&self, inside: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(inside)) else { return Vec::new() };
        let names = entries.flatten().take(MAX_NAMES).map(|entry| entry.file_name());
        let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        names
    }

    /// The text of a symbolic link.
    #[must_use]
    pub fn link(&self, inside: &str) -> Option<String> {
        std::fs::read_link(self.path(inside)).ok()?.into_os_string().into_string().ok()
    }

    /// Whether something is there.
    #[must_use]
    pub fn exists(&self, inside: &str) -> bool {
        self.path(inside).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_an_error_and_not_a_wait() {
        let root = Root::system();
        assert!(root.text("/dev/zero").is_err());
        assert!(root.text("/proc").is_err());
        assert!(root.text("/no/such/file").is_err_and(|error| error.is_absent()));
    }

    #[test]
    fn names_of_nothing_are_none() {
        assert!(Root::system().names("/no/such/folder").is_empty());
        assert!(Root::system().link("/proc/self/exe").is_some());
    }
}
