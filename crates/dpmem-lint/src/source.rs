//! A text with its lines: turns byte offsets into lines and columns, both from 1, columns in characters.

use crate::parse::{TextRange, TextSize};

/// A position a person can go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Text and the offsets at which its lines start.
#[derive(Debug)]
pub(crate) struct Source {
    text: String,
    starts: Vec<usize>,
}

impl Source {
    pub(crate) fn new(text: String) -> Self {
        let mut starts = vec![0];
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            // A lone carriage return ends a line too, as it does for Python.
            if *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n')) {
                starts.push(at + 1);
            }
        }
        Self { text, starts }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn slice(&self, range: TextRange) -> &str {
        &self.text[range.start().to_usize()..range.end().to_usize()]
    }

    /// Line of an offset, from 1.
    pub(crate) fn line(&self, offset: TextSize) -> usize {
        let offset = offset.to_usize();
        self.starts.partition_point(|start| *start <= offset)
    }

    pub(crate) fn position(&self, offset: TextSize) -> Position {
        let line = self.line(offset);
        let start = self.starts[line - 1];
        let before = &self.text[start..offset.to_usize()];
        // A byte order mark takes no column.
        let mark = usize::from(start == 0 && before.starts_with('\u{feff}'));
        let column = before.chars().count() + 1 - mark;
        Position { line, column }
    }

    /// Offset at which `line` (from 1) starts.
    pub(crate) fn line_start(&self, line: usize) -> usize {
        self.starts[line - 1]
    }

    /// Text of `line` (from 1) without its line ending.
    pub(crate) fn line_text(&self, line: usize) -> &str {
        let start = self.starts[line - 1];
        let end = self.starts.get(line).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }

    pub(crate) fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// The ending used by the line that holds `offset`.
    pub(crate) fn newline(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if at > 0 && self.text.as_bytes()[at - 1] == b'\r' => "\r\n",
            _ => "\n",
        }
    }

    /// Leading blanks of the line at `offset`, if only blanks stand before `offset`.
    pub(crate) fn indentation(&self, offset: TextSize) -> Option<&str> {
        let start = self.line_start(self.line(offset));
        let before = self.text[start..offset.to_usize()].trim_start_matches('\u{feff}');
        before.chars().all(|c| c == ' ' || c == '\t').then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let source = Source::new("a\r\nπ = x\rlast".to_owned());
        assert_eq!(source.position(TextSize::new(3 + 5)), Position { line: 2, column: 5 });
        assert_eq!(source.line_text(2), "π = x");
        assert_eq!(source.line_text(3), "last");
        assert_eq!(source.newline(), "\r\n");
    }
}
