//! For people: place, message, the line with carets, advice.

use std::io::{self, Write};

use crate::finding::Severity;
use crate::lint::Located;

/// Longest excerpt, in characters.
const WIDTH: usize = 120;

pub(super) fn write(findings: &[Located], colour: bool, out: &mut dyn Write) -> io::Result<()> {
    let (bold, plain) = if colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    for finding in findings {
        let (hue, word) = match finding.severity {
            Severity::Error => ("\x1b[31m", "error"),
            Severity::Warning => ("\x1b[33m", "warning"),
            Severity::Note => ("\x1b[34m", "note"),
        };
        let hue = if colour { hue } else { "" };
        let cell = finding.cell.map_or_else(String::new, |cell| format!("cell {cell}:"));
        writeln!(
            out,
            "{bold}{}:{cell}{}:{}:{plain} {hue}{} {}{plain} ({word}): {}",
            finding.file,
            finding.start.line,
            finding.start.column,
            finding.code,
            finding.name,
            finding.message
        )?;
        excerpt(finding, out)?;
        writeln!(out, "  = {}", finding.advice)?;
        if let Some(fix) = &finding.fix {
            let option = match fix.safety {
                crate::finding::Safety::Safe => "--fix",
                crate::finding::Safety::Unsafe => "--unsafe-fixes",
            };
            writeln!(out, "  = fixable with `{option}`")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn excerpt(finding: &Located, out: &mut dyn Write) -> io::Result<()> {
    let number = finding.start.line.to_string();
    let margin = " ".repeat(number.len());
    let start = finding.start.column - 1;
    let length = finding.excerpt.chars().count();
    // Long lines are shown around the finding.
    let first = if length > WIDTH && start > WIDTH / 2 { start - WIDTH / 4 } else { 0 };
    let shown: String = finding
        .excerpt
        .chars()
        .skip(first)
        .take(WIDTH)
        .map(|c| if c == '\t' || !c.is_control() { c } else { ' ' })
        .collect();
    let end = if finding.end.line == finding.start.line { finding.end.column - 1 } else { length };
    let lead: String =
        shown.chars().take(start - first).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let room = shown.chars().count().saturating_sub(start - first);
    let carets = "^".repeat(end.saturating_sub(start).clamp(1, room.max(1)));
    writeln!(out, " {margin} |")?;
    writeln!(out, " {number} | {shown}")?;
    writeln!(out, " {margin} | {lead}{carets}")
}
