//! Source text of the lines that the screen shows.
//!
//! Owns reading it from files. Must not fail or wait: a file that is missing, unreadable, no regular file or too long
//! has no source text.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Python files beyond this many bytes are read no further.
const MAX_READ_BYTES: u64 = 8 << 20;

/// Where source text comes from.
pub trait SourceLines {
    /// Line `line`, counted from 1, of `file`; `None` where there is none to show.
    fn line(&self, file: &str, line: u32) -> Option<String>;
}

/// Reads source text from the file itself, one line at a time and only when it is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSources;

impl SourceLines for FileSources {
    fn line(&self, file: &str, line: u32) -> Option<String> {
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        // The interpreter's own names, such as `<string>` or `<frozen runpy>`, are no paths.
        if file.starts_with('<') {
            return None;
        }
        // Opening a pipe would wait for its other end.
        if !std::fs::metadata(file).ok()?.is_file() {
            return None;
        }
        let reader = BufReader::new(File::open(file).ok()?.take(MAX_READ_BYTES));
        let bytes = reader.split(b'\n').nth(index)?.ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Has no source text at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSources;

impl SourceLines for NoSources {
    fn line(&self, _file: &str, _line: u32) -> Option<String> {
        None
    }
}
