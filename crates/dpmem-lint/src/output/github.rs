//! Workflow commands that GitHub shows as annotations.

use std::io::{self, Write};

use crate::finding::Severity;
use crate::lint::Located;

pub(super) fn write(findings: &[Located], out: &mut dyn Write) -> io::Result<()> {
    for finding in findings {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let cell = finding.cell.map_or_else(String::new, |cell| format!("cell {cell}: "));
        writeln!(
            out,
            "::{command} file={},line={},endLine={},col={},endColumn={},title={} {}::{}",
            property(&finding.file),
            finding.start.line,
            finding.end.line,
            finding.start.column,
            finding.end.column,
            finding.code,
            finding.name,
            data(&format!("{cell}{}; {}", finding.message, finding.advice))
        )?;
    }
    Ok(())
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
