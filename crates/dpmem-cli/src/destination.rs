//! Where a report goes as a file: checked before the program starts, written in one piece after it ended.
//!
//! A regular file is replaced by renaming a finished one over it, so a reader never sees half a report. What
//! is no regular file (`/dev/null`, a named pipe, `/dev/fd/3`) is opened and written as it stands.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{fmt, process};

/// The place of one report file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Absolute, so that it stays the same place when the program changes its directory.
    path: PathBuf,
}

/// Why a report cannot be written to the place that was named.
#[derive(Debug)]
pub struct DestinationError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    IsFolder,
    NoFolder,
    FolderIsFile,
    Refused(io::Error),
}

impl Destination {
    /// Takes a path as it was typed, relative to `working_folder`.
    pub fn new(path: &Path, working_folder: &Path) -> Self {
        Self { path: working_folder.join(path) }
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finds out, without leaving anything behind, whether a report could be written now.
    ///
    /// # Errors
    /// When the path is a folder, its folder is missing, or the system refuses to write there.
    pub fn check(&self) -> Result<(), DestinationError> {
        let target = self.followed();
        match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(self.error(Reason::IsFolder)),
            Ok(found) if !found.is_file() => return Ok(()),
            Ok(_) => {
                OpenOptions::new()
                    .append(true)
                    .open(&target)
                    .map_err(|error| self.error(Reason::Refused(error)))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.error(Reason::Refused(error))),
        }
        let folder = folder_of(&target);
        match fs::metadata(folder) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(self.error(Reason::FolderIsFile)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(self.error(Reason::NoFolder)),
            Err(error) => return Err(self.error(Reason::Refused(error))),
        }
        // A file without a name: it cannot be left behind, whenever the process is killed.
        match OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(folder) {
            // The file system cannot do that; whether it can do the rest turns out later.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) =>
            {
                Ok(())
            }
            Err(error) => Err(self.error(Reason::Refused(error))),
            Ok(_) => Ok(()),
        }
    }

    /// Writes `text` and a newline.
    ///
    /// # Errors
    /// When the system refuses; then the place holds what it held before.
    pub fn write(&self, text: &str) -> Result<(), DestinationError> {
        let target = self.followed();
        let special = fs::metadata(&target).is_ok_and(|found| !found.is_file());
        let outcome = if special {
            OpenOptions::new().write(true).open(&target).and_then(|mut file| write_line(&mut file, text))
        } else {
            replace(&target, text)
        };
        outcome.map_err(|error| self.error(Reason::Refused(error)))
    }

    /// The file that symbolic links lead to: it is replaced, the links stay.
    fn followed(&self) -> PathBuf {
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    fn error(&self, reason: Reason) -> DestinationError {
        DestinationError { path: self.path.clone(), reason }
    }
}

impl fmt::Display for DestinationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.reason {
            Reason::IsFolder => {
                write!(f, "write the report to `{path}`: that is a folder; name a file in it")
            }
            Reason::NoFolder => {
                write!(
                    f,
                    "write the report to `{path}`: its folder does not exist; create it or name another"
                )
            }
            Reason::FolderIsFile => {
                write!(f, "write the report to `{path}`: a part of the path is a file, not a folder")
            }
            Reason::Refused(error) => {
                write!(f, "write the report to `{path}`: {error}; name a place you may write to")
            }
        }
    }
}

impl std::error::Error for DestinationError {}

/// The report of a spawned child process: the parent's path with the child's process id appended.
pub fn spawned_path(path: &Path, pid: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{pid}"));
    PathBuf::from(name)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("/"))
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.unfinished", process::id()));
    folder_of(path).join(name)
}

fn replace(target: &Path, text: &str) -> io::Result<()> {
    let trial = unfinished(target);
    let written =
        OpenOptions::new().write(true).create(true).truncate(true).open(&trial).and_then(|mut file| {
            write_line(&mut file, text)?;
            if let Ok(old) = fs::metadata(target) {
                file.set_permissions(old.permissions())?;
            }
            fs::rename(&trial, target)
        });
    if written.is_err() {
        // The first error is the one to report; a leftover that cannot be removed changes nothing about it.
        let _ = fs::remove_file(&trial);
    }
    written
}

fn write_line(file: &mut fs::File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("dpmem-destination-{name}-{}", process::id()));
            fs::create_dir_all(&path).expect("a temporary folder can be made");
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("the folder is there");
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_report_replaces_the_last_one_and_leaves_nothing_else() {
        let folder = Folder::new("replace");
        let destination = Destination::new(Path::new("r.json"), &folder.0);
        destination.check().expect("writable");
        assert!(folder.names().is_empty());
        destination.write("{\"a\": 1}").expect("written");
        destination.check().expect("writable again");
        destination.write("{}").expect("replaced");
        assert_eq!(folder.names(), ["r.json"]);
        assert_eq!(fs::read_to_string(destination.path()).expect("readable"), "{}\n");
    }

    #[test]
    fn links_stay_and_their_target_is_replaced() {
        let folder = Folder::new("links");
        fs::write(folder.0.join("real.json"), "old").expect("written");
        std::os::unix::fs::symlink("real.json", folder.0.join("link.json")).expect("linked");
        Destination::new(Path::new("link.json"), &folder.0).write("new").expect("written");
        assert!(fs::symlink_metadata(folder.0.join("link.json")).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(folder.0.join("real.json")).expect("readable"), "new\n");
    }

    #[test]
    fn what_is_no_file_is_written_as_it_stands() {
        let null = Destination::new(Path::new("/dev/null"), Path::new("/"));
        null.check().expect("writable");
        null.write("{}").expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file());
    }

    #[test]
    fn refusals_name_the_path_and_what_to_do() {
        let folder = Folder::new("refusals");
        fs::write(folder.0.join("file"), "").expect("written");
        for (path, expected) in [
            (folder.0.clone(), "that is a folder; name a file in it"),
            (folder.0.join("missing/r.json"), "its folder does not exist"),
            (folder.0.join("file/r.json"), "Not a directory"),
        ] {
            let destination = Destination::new(&path, Path::new("/"));
            let text = destination.check().expect_err("refused").to_string();
            assert!(text.contains(expected), "{text}");
            assert!(text.contains(&path.display().to_string()), "{text}");
        }
    }

    #[test]
    fn a_spawned_child_has_its_own_file() {
        assert_eq!(spawned_path(Path::new("/a/r.json"), 42), Path::new("/a/r.json.42"));
    }
}
