//! Jupyter notebooks: the code cells as one Python text, with magics masked, and the way back.
//!
//! Masking keeps every byte offset, so an edit of the masked text is an edit of the real one.

use serde_json::Value;

use crate::source::Position;

/// Cell magics after which the cell is Python all the same.
const PYTHON_MAGICS: &[&str] =
    &["time", "timeit", "capture", "prun", "dpmem", "memit", "mprun", "python", "python3"];

/// The code cells of a notebook.
#[derive(Debug)]
pub(crate) struct Notebook {
    document: Value,
    cells: Vec<Cell>,
    /// All cells, each ended by a line break, as written.
    text: String,
    /// The same with magics masked.
    masked: String,
}

#[derive(Debug)]
struct Cell {
    /// Place in the document's list of cells.
    at: usize,
    first_line: usize,
    start: usize,
    end: usize,
    /// The cell's text ended without a line break.
    open: bool,
}

impl Notebook {
    /// Reads a notebook.
    ///
    /// # Errors
    /// What is wrong with the JSON or its structure, as a fragment.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| format!("read notebook: {error}"))?;
        let list = document
            .get("cells")
            .and_then(Value::as_array)
            .ok_or("read notebook: expected a list of `cells` (notebook format 4)")?;
        let mut notebook =
            Self { document: Value::Null, cells: Vec::new(), text: String::new(), masked: String::new() };
        let mut line = 1;
        for (at, cell) in list.iter().enumerate() {
            if cell.get("cell_type").and_then(Value::as_str) != Some("code") {
                continue;
            }
            let mut source = match cell.get("source") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            let open = !source.ends_with('\n');
            if open {
                source.push('\n');
            }
            let start = notebook.text.len();
            notebook.text.push_str(&source);
            notebook.masked.push_str(&masked(&source));
            notebook.cells.push(Cell { at, first_line: line, start, end: notebook.text.len(), open });
            line += source.matches('\n').count();
        }
        notebook.document = document;
        Ok(notebook)
    }

    /// Python for the parser.
    pub(crate) fn masked(&self) -> &str {
        &self.masked
    }

    /// What people wrote.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The code cell (from 1, markdown cells counted) and the position in it.
    pub(crate) fn locate(&self, position: Position) -> (usize, Position) {
        let at = self.cells.partition_point(|cell| cell.first_line <= position.line).saturating_sub(1);
        match self.cells.get(at) {
            Some(cell) => {
                (cell.at + 1, Position { line: position.line - cell.first_line + 1, column: position.column })
            }
            None => (1, position),
        }
    }

    /// True if all of the range is in one cell.
    pub(crate) fn is_within_cell(&self, start: usize, end: usize) -> bool {
        self.cells.iter().any(|cell| cell.start <= start && end <= cell.end)
    }

    /// The notebook with `edits` (offsets of the text, sorted) made, in the formatting of `original`.
    ///
    /// `None` if the file's own formatting cannot be reproduced.
    pub(crate) fn rewritten(&self, original: &str, edits: &[(usize, usize, &str)]) -> Option<String> {
        let indent = [" ", "  ", "    ", "\t", ""].into_iter().find(|indent| {
            written(&self.document, indent).is_some_and(|text| text == original.trim_end_matches('\n'))
        })?;
        let ending = &original[original.trim_end_matches('\n').len()..];
        let mut document = self.document.clone();
        for cell in &self.cells {
            let own: Vec<_> =
                edits.iter().filter(|(start, end, _)| cell.start <= *start && *end <= cell.end).collect();
            if own.is_empty() {
                continue;
            }
            let mut source = String::new();
            let mut at = cell.start;
            for (start, end, text) in own {
                source.push_str(&self.text[at..*start]);
                source.push_str(text);
                at = *end;
            }
            source.push_str(&self.text[at..cell.end]);
            if cell.open {
                source.pop();
            }
            let slot = document.get_mut("cells")?.get_mut(cell.at)?.get_mut("source")?;
            *slot = match slot {
                Value::String(_) => Value::String(source),
                _ => source.split_inclusive('\n').map(|line| Value::String(line.to_owned())).collect(),
            };
        }
        Some(written(&document, indent)? + ending)
    }
}

fn written(document: &Value, indent: &str) -> Option<String> {
    if indent.is_empty() {
        return serde_json::to_string(document).ok();
    }
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    serde::Serialize::serialize(document, &mut serializer).ok()?;
    String::from_utf8(bytes).ok()
}

/// The cell with magics replaced by as many bytes of comments and `pass`.
fn masked(source: &str) -> String {
    let first = source.trim_start().split([' ', '\t', '\n']).next().unwrap_or("");
    let foreign = first.strip_prefix("%%").is_some_and(|magic| !PYTHON_MAGICS.contains(&magic));
    let mut result = String::with_capacity(source.len());
    let mut in_string = None;
    let mut depth = 0_i32;
    let mut continued = false;
    for line in source.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let inner = body.trim_start_matches([' ', '\t']);
        let is_magic = in_string.is_none()
            && depth <= 0
            && !continued_code(continued)
            && (inner.starts_with(['%', '!', '?'])
                || inner.ends_with('?') && !inner.starts_with('#')
                || has_assigned_magic(inner));
        if foreign {
            comment(&mut result, line, body, 0);
            continue;
        }
        if is_magic || continued && !result.is_empty() && continued_code(continued) {
            comment(&mut result, line, body, body.len() - inner.len());
            continued = body.ends_with('\\');
        } else {
            result.push_str(line);
            scan(body, &mut in_string, &mut depth);
            continued = false;
        }
    }
    result
}

/// A magic that goes on after a backslash.
fn continued_code(continued: bool) -> bool {
    continued
}

/// `files = !ls` and `result = %timeit -o f()`
fn has_assigned_magic(line: &str) -> bool {
    line.split_once('=').is_some_and(|(target, value)| {
        let value = value.trim_start();
        !target.contains(['\'', '"', '(', '#'])
            && !target.trim().is_empty()
            && (value.starts_with('!') && !value.starts_with("!=") || value.starts_with('%'))
    })
}

/// Pushes the line as a statement that does nothing, of as many bytes.
fn comment(result: &mut String, line: &str, body: &str, indent: usize) {
    let (blank, inner) = body.split_at(indent);
    result.push_str(blank);
    match inner.len() {
        0 => {}
        1..=3 => {
            result.push('0');
            result.extend(std::iter::repeat_n(' ', inner.len() - 1));
        }
        4 => result.push_str("pass"),
        length => {
            result.push_str("pass#");
            result.extend(std::iter::repeat_n('-', length - 5));
        }
    }
    result.push_str(&line[body.len()..]);
}

/// Follows brackets and triple-quoted strings over a line.
fn scan(line: &str, in_string: &mut Option<&'static str>, depth: &mut i32) {
    let mut rest = line;
    while !rest.is_empty() {
        if let Some(quote) = *in_string {
            match rest.find(quote) {
                Some(at) => {
                    rest = &rest[at + 3..];
                    *in_string = None;
                }
                None => return,
            }
            continue;
        }
        if let Some(quote) = ["\"\"\"", "'''"].into_iter().find(|quote| rest.starts_with(quote)) {
            *in_string = Some(quote);
            rest = &rest[3..];
            continue;
        }
        let Some(first) = rest.chars().next() else { return };
        match first {
            '#' => return,
            '"' | '\'' => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, c)| {
                    let closes = *c == first && !escaped;
                    escaped = *c == '\\' && !escaped;
                    closes
                });
                rest = end.map_or("", |(at, _)| &rest[at + 1..]);
                continue;
            }
            '(' | '[' | '{' => *depth += 1,
            ')' | ']' | '}' => *depth -= 1,
            _ => {}
        }
        rest = &rest[first.len_utf8()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magics_are_masked_in_place() {
        let source =
            "%matplotlib inline\n!ls\nx = 1\nfiles = !ls *.npy\nif x:\n    %time f()\nx?\ny = (1\n  % 2)\n";
        let result = masked(source);
        assert_eq!(result.len(), source.len());
        assert!(crate::parse::parse(&result).is_ok(), "{result}");
        assert!(result.contains("x = 1\n") && result.contains("  % 2)\n"));
        assert!(!masked("%%bash\nfor f in *; do\n").contains("for"));
        assert!(masked("%%time\nx = 1\n").ends_with("x = 1\n"));
    }

    #[test]
    fn a_notebook_is_rewritten_in_its_own_formatting() {
        let text = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"source\": []\n  },\n  {\n   \"cell_type\": \"code\",\n   \"source\": [\n    \"x = 1\\n\",\n    \"y = 2\"\n   ]\n  }\n ],\n \"nbformat\": 4\n}\n";
        let notebook = Notebook::parse(text).expect("a notebook");
        assert_eq!(notebook.text(), "x = 1\ny = 2\n");
        assert_eq!(notebook.locate(Position { line: 2, column: 3 }), (2, Position { line: 2, column: 3 }));
        assert_eq!(notebook.rewritten(text, &[]).as_deref(), Some(text));
        let changed = notebook.rewritten(text, &[(4, 5, "3")]).expect("rewritten");
        assert_eq!(changed, text.replace("x = 1", "x = 3"));
    }
}
