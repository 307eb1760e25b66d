//! The files to check: what is named, and what is found below named directories.

use std::path::{Path, PathBuf};

/// Files found, and what could not be walked.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) errors: Vec<String>,
}

/// Walks `paths`: a file is taken as it is, a directory searched for Python files and notebooks.
///
/// Respects `.gitignore`, `.ignore` and hidden files below directories. Links are followed; a loop is an error.
pub(crate) fn find(paths: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in paths {
        if !path.is_dir() {
            if path.exists() {
                found.files.push(path.clone());
            } else {
                found.errors.push(format!("read `{}`: no such file or directory", path.display()));
            }
            continue;
        }
        let walk = ignore::WalkBuilder::new(path)
            .follow_links(true)
            .require_git(false)
            .sort_by_file_path(Path::cmp)
            .build();
        for entry in walk {
            match entry {
                Ok(entry) => {
                    if entry.file_type().is_some_and(|kind| kind.is_file()) && is_python(entry.path()) {
                        found.files.push(entry.into_path());
                    }
                }
                Err(error) if is_broken_link(&error) => {}
                Err(error) => found.errors.push(format!("walk `{}`: {error}", path.display())),
            }
        }
    }
    // The same file may be named twice, or be below two named directories.
    let mut seen = std::collections::HashSet::new();
    found.files.retain(|file| seen.insert(file.clone()));
    found
}

/// A link to nowhere is no file, and no fault of the walk.
fn is_broken_link(error: &ignore::Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn is_python(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| matches!(extension, "py" | "pyw" | "ipynb"))
}
