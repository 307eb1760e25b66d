//! Which files are libraries, so that reports can name the user's own line first.

/// Folders whose files are no user code.
#[derive(Clone, Debug, Default)]
pub struct LibraryPaths {
    folders: Vec<String>,
}

impl LibraryPaths {
    /// Files below these folders, and these files, are libraries; so is everything below a `site-packages` or `dist-packages` folder
    /// and whatever the interpreter has frozen in.
    pub fn new(folders: impl IntoIterator<Item = String>) -> Self {
        let slash = |mut folder: String| {
            if !folder.ends_with('/') {
                folder.push('/');
            }
            folder
        };
        LibraryPaths { folders: folders.into_iter().filter(|f| f.len() > 1).map(slash).collect() }
    }

    /// Whether a frame of that file is a library's.
    pub fn contains(&self, file: &str) -> bool {
        file.starts_with("<frozen ")
            || file.contains("/site-packages/")
            || file.contains("/dist-packages/")
            || self.folders.iter().any(|folder| file.starts_with(folder.as_str()) || is_itself(folder, file))
            || is_compiled_source(file)
    }
}

/// Whether a "folder" is in truth this file.
fn is_itself(folder: &str, file: &str) -> bool {
    folder.strip_suffix('/') == Some(file)
}

/// Cython modules name their source by a path of the machine that built them.
fn is_compiled_source(file: &str) -> bool {
    file.ends_with(".pyx") || file.ends_with(".pxi") || file.ends_with(".pxd")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_from_user_code() {
        let paths = LibraryPaths::new(["/usr/lib/python3.11", "", "/", "/v/bin/dpmem"].map(String::from));
        for file in [
            "/usr/lib/python3.11/runpy.py",
            "/v/lib/python3.11/site-packages/dpnp/dpnp_array.py",
            "<frozen runpy>",
            "/v/bin/dpmem",
            "dpctl/memory/_memory.pyx",
        ] {
            assert!(paths.contains(file), "{file}");
        }
        for file in ["/home/me/train.py", "<string>", "<stdin>", "/usr/lib/python3.11x/a.py", "train.py"] {
            assert!(!paths.contains(file), "{file}");
        }
    }
}
