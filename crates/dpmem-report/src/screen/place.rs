//! The place that a stack is reported as: the user's own line.
//!
//! Owns that choice and the path that is shown for it. Invariant: two stacks with the same user's line are the same
//! place, whatever called it.

use std::path::Path;

use super::Screen;
use super::subject::Subject;
use super::text;
use crate::report::Frame;

const NO_LINE: &str = "no Python line";
const TOP_LEVEL: &str = "<module>";

/// What identifies a place; orders rows that are otherwise equal.
pub(super) type PlaceKey<'a> = (&'a str, u32);

/// Where something happened, as a person would name it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Line(&'a Frame),
    Label(&'a str),
}

impl<'a> Place<'a> {
    /// The innermost frame that is no library, else the innermost frame, else the label.
    pub(super) fn of(stack: &'a [Frame], label: Option<&'a str>) -> Self {
        match stack.iter().find(|frame| !frame.library).or(stack.first()) {
            Some(frame) => Self::Line(frame),
            None => Self::Label(label.unwrap_or(NO_LINE)),
        }
    }

    /// The place of something whose stack is not in the report.
    pub(super) fn unknown() -> Self {
        Self::Label(NO_LINE)
    }

    pub(super) fn key(self) -> PlaceKey<'a> {
        match self {
            Self::Line(frame) => (&frame.file, frame.line),
            // Lines count from 1, so a label is no line's key.
            Self::Label(label) => (label, 0),
        }
    }

    /// What the screen shows of it, with its source text.
    pub(super) fn subject(self, screen: &Screen<'_>) -> Subject {
        let frame = match self {
            Self::Label(label) => return Subject::note(label),
            Self::Line(frame) => frame,
        };
        let mut context = String::new();
        if frame.function != TOP_LEVEL && !frame.function.is_empty() {
            context.push_str(" in ");
            context.push_str(&frame.function);
        }
        if frame.library {
            context.push_str(" (library)");
        }
        let source = screen.sources.line(&frame.file, frame.line).unwrap_or_default();
        Subject::place(&shown_path(&frame.file, screen.cwd.as_deref()), frame.line, &context, &source)
    }
}

/// `file` relative to `cwd` when it is below it; what is below the root directory stays absolute.
pub(super) fn shown_path(file: &str, cwd: Option<&Path>) -> String {
    let below = cwd.filter(|cwd| cwd.parent().is_some());
    let below = below.and_then(|cwd| Path::new(file).strip_prefix(cwd).ok()).and_then(Path::to_str);
    text::clean(below.filter(|path| !path.is_empty()).unwrap_or(file)).into_owned()
}
