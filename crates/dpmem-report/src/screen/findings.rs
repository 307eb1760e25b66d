//! Findings: how bad, what, where and what to do, the worst first. Owns nothing but this section.

use super::View;
use super::line::{Ink, Line};
use super::place::shown_path;
use super::subject::{MIN_ROOM, Subject};
use super::text;
use crate::bytes;
use crate::report::{Finding, Severity};

const INDENT: usize = 2;
/// A message or an advice longer than this is cut.
const MAX_LINES: usize = 3;

pub(super) fn lines(view: &View<'_>) -> Vec<Line> {
    let mut findings: Vec<&Finding> = view.report.findings.iter().collect();
    findings.sort_by_key(|finding| finding.severity);
    if findings.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::of(Ink::Strong, "Findings")];
    for finding in findings.iter().copied().take(view.rows) {
        lines.extend(heading(finding, view));
        lines.extend(indented(Ink::Plain, &finding.message, view.width));
        lines.extend(indented(Ink::Faint, &finding.advice, view.width));
    }
    let others = findings.len().saturating_sub(view.rows);
    if others > 0 {
        let plural = if others == 1 { "" } else { "s" };
        let more = format!("  … and {} more finding{plural}", bytes::count(others as u64));
        lines.push(Line::of(Ink::Faint, &more));
    }
    lines
}

fn heading(finding: &Finding, view: &View<'_>) -> Vec<Line> {
    let (ink, severity) = match finding.severity {
        Severity::Error => (Ink::Alarm, "error"),
        Severity::Warning => (Ink::Caution, "warning"),
        Severity::Note => (Ink::Plain, "note"),
    };
    let mut line = Line::of(Ink::Plain, "  ").with(ink, severity).with(Ink::Plain, " ");
    line.push(Ink::Plain, &text::cut_right(&text::clean(&finding.code), view.width / 3));
    line.push(Ink::Plain, " ");
    line.push(Ink::Plain, &text::cut_right(&text::clean(&finding.name), view.width / 3));
    let Some(file) = &finding.file else {
        return vec![line];
    };
    let path = shown_path(file, view.screen.cwd.as_deref());
    let place = match finding.line {
        Some(number) => Subject::place(&path, number, "", ""),
        None => Subject::note(&path),
    };
    let mut lines = Vec::new();
    if line.columns() + INDENT + place.columns().min(MIN_ROOM) > view.width {
        lines.push(std::mem::replace(&mut line, Line::of(Ink::Plain, "  ")));
    }
    line.push(Ink::Plain, "  ");
    let room = view.width.saturating_sub(line.columns());
    place.write(&mut line, room, 0);
    lines.push(line);
    lines
}

fn indented(ink: Ink, content: &str, width: usize) -> Vec<Line> {
    let indent = " ".repeat(2 * INDENT);
    let parts = text::wrap(content, width - 2 * INDENT, MAX_LINES);
    parts.iter().map(|part| Line::of(Ink::Plain, &indent).with(ink, part)).collect()
}
