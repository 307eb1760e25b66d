//! The report as one screen of text.
//!
//! Owns the order of the sections and the height of the screen; each section is a module below. Must not print, and
//! must not ask what the terminal can do: [`Screen`] says it.
//!
//! Invariants, whatever the report holds: no line is wider than the screen, text from outside carries no control
//! character, without colour there is no escape sequence, and numbers are never cut.

mod completeness;
mod copies;
mod findings;
mod headline;
mod history;
mod line;
mod place;
mod pool;
mod ranking;
mod sites;
mod sources;
mod subject;
mod table;
mod text;
mod usage;

use std::path::PathBuf;

use line::Line;
pub use sources::{FileSources, NoSources, SourceLines};

use crate::report::Report;

/// Narrower screens are written as if they had this many columns.
const MIN_WIDTH: usize = 40;
/// Wider screens are not filled: numbers would stand too far from what they count.
const MAX_WIDTH: usize = 120;
/// What a busy report should fit into.
const MAX_LINES: usize = 45;
/// Rows per ranking, tried until the screen fits.
const ROWS: [usize; 3] = [5, 4, 3];

/// What the summary is written for.
pub struct Screen<'a> {
    /// Terminal columns; taken as at least 40 and at most 120.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub colour: bool,
    /// Paths below this directory are shown relative to it.
    pub cwd: Option<PathBuf>,
    /// Where source text comes from.
    pub sources: &'a dyn SourceLines,
}

/// The report as text of about one screen, each line ended by a newline.
#[must_use]
pub fn render(report: &Report, screen: &Screen<'_>) -> String {
    let width = screen.width.clamp(MIN_WIDTH, MAX_WIDTH);
    let mut lines = Vec::new();
    for rows in ROWS {
        lines = layout(&View { report, screen, width, rows });
        if lines.len() <= MAX_LINES {
            break;
        }
    }
    let mut text = String::new();
    for line in lines {
        line.write(&mut text, width, screen.colour);
        text.push('\n');
    }
    text
}

/// One attempt at the screen: the report and how much of it to show.
struct View<'a> {
    report: &'a Report,
    screen: &'a Screen<'a>,
    width: usize,
    rows: usize,
}

fn layout(view: &View<'_>) -> Vec<Line> {
    let mut head = headline::lines(view);
    head.extend(completeness::lines(view));
    let sections = [
        head,
        usage::lines(view),
        pool::lines(view),
        sites::at_peak(view),
        sites::still_in_use(view),
        sites::busiest(view),
        copies::lines(view),
        findings::lines(view),
        history::lines(view),
    ];
    let mut lines = Vec::new();
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(section);
    }
    lines
}
