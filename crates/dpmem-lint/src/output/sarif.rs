//! SARIF 2.1.0, for code-scanning services.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::finding::Severity;
use crate::lint::Located;
use crate::rules;
use crate::source::Position;

pub(super) fn write(findings: &[Located], out: &mut dyn Write) -> io::Result<()> {
    let descriptors: Vec<Value> = rules::codes()
        .filter_map(rules::rule)
        .map(|doc| {
            json!({
                "id": doc.code,
                "name": doc.name,
                "shortDescription": { "text": doc.name.replace('-', " ") },
                "fullDescription": { "text": doc.what.trim().replace('\n', " ") },
                "help": { "text": doc.why.trim().replace('\n', " ") },
                "defaultConfiguration": { "level": level(doc.severity) },
            })
        })
        .collect();
    let results: Vec<Value> = findings.iter().map(|finding| result(finding, &descriptors)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "dpmem lint",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": descriptors,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn result(finding: &Located, descriptors: &[Value]) -> Value {
    let artifact = json!({ "uri": uri(&finding.file) });
    let mut value = json!({
        "ruleId": finding.code,
        "ruleIndex": descriptors.iter().position(|rule| rule["id"] == finding.code),
        "level": level(finding.severity),
        "message": { "text": format!("{}; {}", finding.message, finding.advice) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": artifact,
                "region": region(finding.start, finding.end),
            },
        }],
    });
    // Edits of a notebook are in a cell's lines, which SARIF cannot say.
    if let (Some(fix), None, Some(map)) = (&finding.fix, finding.cell, value.as_object_mut()) {
        let replacements: Vec<Value> = fix
            .edits
            .iter()
            .map(|(start, end, text)| {
                json!({ "deletedRegion": region(*start, *end), "insertedContent": { "text": text } })
            })
            .collect();
        map.insert(
            "fixes".to_owned(),
            json!([{
                "description": { "text": finding.advice },
                "artifactChanges": [{ "artifactLocation": artifact, "replacements": replacements }],
            }]),
        );
    }
    value
}

fn region(start: Position, end: Position) -> Value {
    json!({
        "startLine": start.line, "startColumn": start.column,
        "endLine": end.line, "endColumn": end.column,
    })
}

/// A relative reference or file URI, everything unusual percent-encoded.
fn uri(file: &str) -> String {
    let mut text = String::new();
    if file.starts_with('/') {
        text.push_str("file://");
    }
    for byte in file.trim_start_matches("./").bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            text.push(byte as char);
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
