//! The list that `--output-format json` prints.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::lint::Located;

pub(super) fn write(findings: &[Located], out: &mut dyn Write) -> io::Result<()> {
    let list: Vec<Value> = findings.iter().map(one).collect();
    serde_json::to_writer_pretty(&mut *out, &list)?;
    writeln!(out)
}

fn one(finding: &Located) -> Value {
    let fix = finding.fix.as_ref().map(|fix| {
        let edits: Vec<Value> = fix
            .edits
            .iter()
            .map(|(start, end, text)| {
                json!({
                    "line": start.line, "column": start.column,
                    "end_line": end.line, "end_column": end.column, "text": text,
                })
            })
            .collect();
        json!({ "safety": fix.safety, "edits": edits })
    });
    let mut value = json!({
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "file": finding.file,
        "line": finding.start.line,
        "column": finding.start.column,
        "end_line": finding.end.line,
        "end_column": finding.end.column,
        "message": finding.message,
        "advice": finding.advice,
        "fix": fix,
    });
    // Lines of a notebook are those of the cell.
    if let (Some(cell), Some(map)) = (finding.cell, value.as_object_mut()) {
        map.insert("cell".to_owned(), cell.into());
    }
    value
}
