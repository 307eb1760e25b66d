//! Files to read from: opened when they are needed, and only if they are still the ones that were looked at.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::time::SystemTime;

use crate::{Error, Origin};

/// A source may have more files than a process may open.
const KEPT_OPEN: usize = 16;

/// A file, by its name and by what tells it from one that is put in its place.
#[derive(Debug)]
pub struct FileOrigin {
    path: PathBuf,
    identity: Identity,
}

/// Device and inode, and when the file was made: many file systems give the inode of a file that is gone to the next
/// one at once. None where the system can't tell.
type Identity = (u64, u64, Option<SystemTime>);

impl FileOrigin {
    /// The file `path` that was on `device` as `inode` when somebody looked at it, just now.
    #[must_use]
    pub fn new(path: PathBuf, device: u64, inode: u64) -> FileOrigin {
        let created = std::fs::metadata(&path).and_then(|metadata| metadata.created()).ok();
        FileOrigin { path, identity: (device, inode, created) }
    }
}

impl Origin for FileOrigin {
    fn read(&self, offset: u64, into: &mut [u8], files: &mut OpenFiles) -> Result<(), Error> {
        let file = files.file(self, offset)?;
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            match file.read_at(&mut into[done..], at) {
                Ok(0) => {
                    let length = file.metadata().map_or(at, |metadata| metadata.len());
                    let wanted = (into.len() - done) as u64;
                    return Err(Error::Short { path: self.path.clone(), offset: at, wanted, length });
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Read { path: self.path.clone(), offset: at, source }),
            }
        }
        Ok(())
    }
}

/// Files that stay open from one read to the next, the one used last in front.
#[derive(Debug, Default)]
pub struct OpenFiles {
    kept: VecDeque<(Identity, File)>,
}

impl OpenFiles {
    fn file(&mut self, origin: &FileOrigin, offset: u64) -> Result<&File, Error> {
        if let Some(at) = self.kept.iter().position(|(identity, _)| *identity == origin.identity) {
            self.kept.swap(0, at);
        } else {
            let file = open(origin, offset)?;
            self.kept.truncate(KEPT_OPEN - 1);
            self.kept.push_front((origin.identity, file));
        }
        self.kept.front().map(|(_, file)| file).ok_or(Error::Closed)
    }
}

fn open(origin: &FileOrigin, offset: u64) -> Result<File, Error> {
    let failed = |source| Error::Open { path: origin.path.clone(), offset, source };
    let file = File::open(&origin.path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if (metadata.dev(), metadata.ino(), metadata.created().ok()) != origin.identity {
        return Err(Error::Replaced { path: origin.path.clone(), offset });
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(path: &std::path::Path) -> FileOrigin {
        let metadata = std::fs::metadata(path).expect("it is there");
        FileOrigin::new(path.to_owned(), metadata.dev(), metadata.ino())
    }

    #[test]
    fn more_files_than_are_kept_open_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut files = OpenFiles::default();
        let origins: Vec<_> = (0..40u8)
            .map(|number| {
                let path = folder.path().join(number.to_string());
                std::fs::write(&path, [number; 9]).expect("room");
                origin(&path)
            })
            .collect();
        for _ in 0..2 {
            for (number, origin) in (0..40u8).zip(&origins) {
                let mut found = [0; 4];
                origin.read(5, &mut found, &mut files).expect("it is there");
                assert_eq!(found, [number; 4]);
            }
        }
        assert_eq!(files.kept.len(), KEPT_OPEN);
    }

    #[test]
    fn a_file_that_shrinks_is_told_with_its_offset() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [1; 100]).expect("room");
        let (origin, mut files, mut found) = (origin(file.path()), OpenFiles::default(), [0; 40]);
        origin.read(60, &mut found, &mut files).expect("it is whole");
        file.as_file().set_len(70).expect("it can shrink");
        let error = origin.read(60, &mut found, &mut files).expect_err("it has shrunk");
        let text = error.to_string();
        assert!(matches!(error, Error::Short { offset: 70, wanted: 30, length: 70, .. }), "{text}");
        assert!(text.contains(file.path().to_str().expect("plain")), "{text}");
    }

    #[test]
    fn a_file_that_is_gone_or_another_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        std::fs::write(&path, [1; 8]).expect("room");
        let origin = origin(&path);
        let other = folder.path().join("other");
        std::fs::write(&other, [2; 8]).expect("room");
        std::fs::rename(&other, &path).expect("both are there");
        let mut found = [0; 8];
        let error = origin.read(3, &mut found[..5], &mut OpenFiles::default()).expect_err("another");
        assert!(matches!(error, Error::Replaced { offset: 3, .. }), "{error}");
        std::fs::remove_file(&path).expect("it is there");
        // Its inode may be that of the first one.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(&path, [3; 8]).expect("room");
        let error = origin.read(3, &mut found[..5], &mut OpenFiles::default()).expect_err("another");
        assert!(matches!(error, Error::Replaced { offset: 3, .. }), "{error}");
        std::fs::remove_file(&path).expect("it is there");
        let error = origin.read(0, &mut found, &mut OpenFiles::default()).expect_err("gone");
        assert!(error.system().is_some_and(|source| source.kind() == io::ErrorKind::NotFound), "{error}");
    }
}
