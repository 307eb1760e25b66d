//! What a row is about: a line of the user's program with its source text, or a few words.
//!
//! Owns how a subject gives way when there is little room: first its source text, then the path from the left, then
//! the function. The line number always stays.

use super::line::{Ink, Line};
use super::text;

/// A subject in this many columns, or in its own if they are fewer, still shows its line number and some of the rest.
pub(super) const MIN_ROOM: usize = 26;
/// Less source text than this says nothing.
const MIN_SOURCE: usize = 14;
const SOURCE_GAP: usize = 2;

/// What a row is about. All parts are clean.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    path: String,
    number: String,
    context: String,
    source: String,
    ink: Ink,
}

impl Subject {
    pub(super) fn place(path: &str, line: u32, context: &str, source: &str) -> Self {
        Self {
            path: text::clean(path).into_owned(),
            number: format!(":{line}"),
            context: text::clean(context).into_owned(),
            source: text::clean(&source.trim().replace('\t', " ")).into_owned(),
            ink: Ink::Plain,
        }
    }

    pub(super) fn note(words: &str) -> Self {
        let context = text::clean(words).into_owned();
        Self { path: String::new(), number: String::new(), context, source: String::new(), ink: Ink::Plain }
    }

    pub(super) fn in_ink(mut self, ink: Ink) -> Self {
        self.ink = ink;
        self
    }

    /// Columns of everything but the source text.
    pub(super) fn columns(&self) -> usize {
        text::columns(&self.path) + text::columns(&self.number) + text::columns(&self.context)
    }

    /// What a path keeps while a function name can still be cut: its last component, within half of the room.
    fn least_path(&self, room: usize) -> usize {
        let last = self.path.rfind('/').map_or(self.path.as_str(), |slash| &self.path[slash..]);
        let ellipsis = usize::from(last.len() < self.path.len());
        (text::columns(last) + ellipsis).min(room / 2)
    }

    /// Appends the subject in at most `room` columns, its source text `source_at` columns from the subject's start or
    /// as soon after as it can.
    pub(super) fn write(&self, line: &mut Line, room: usize, source_at: usize) {
        let start = line.columns();
        let path_room = room.saturating_sub(text::columns(&self.number) + text::columns(&self.context));
        let path = text::cut_path(&self.path, path_room.max(self.least_path(room)));
        let context_room = room.saturating_sub(text::columns(&path) + text::columns(&self.number));
        line.push(self.ink, &path);
        line.push(self.ink, &self.number);
        line.push(self.ink, &text::cut_right(&self.context, context_room));

        let source_start = source_at.max(line.columns() - start + SOURCE_GAP);
        let source_room = room.saturating_sub(source_start);
        if !self.source.is_empty() && source_room >= MIN_SOURCE.min(text::columns(&self.source)) {
            line.pad_to(start + source_start);
            line.push(Ink::Faint, &text::cut_right(&self.source, source_room));
        }
    }
}

/// The column at which the source texts of `subjects` line up, 0 where that would leave too little room for them.
pub(super) fn source_column<'a>(subjects: impl Iterator<Item = &'a Subject>, room: usize) -> usize {
    let sourced = subjects.filter(|subject| !subject.source.is_empty());
    let widest = sourced.map(Subject::columns).max().unwrap_or(0);
    if widest <= room * 3 / 5 { widest + SOURCE_GAP } else { 0 }
}
