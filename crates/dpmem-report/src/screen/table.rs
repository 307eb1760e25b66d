//! A section that is a table: a title, subjects at the left, short values at the right.
//!
//! Owns alignment. Two forms: side by side, or, where the screen is too narrow for that, each row's values under its
//! subject. Values are never cut in either.

use super::line::{Ink, Line};
use super::subject::{MIN_ROOM, Subject, source_column};
use super::text;

const INDENT: usize = 2;
const GAP: usize = 2;
/// A column of values.
pub(super) struct Column {
    /// Above the values.
    head: &'static str,
    /// Before the value where values stand below their subject.
    label: &'static str,
    align: Align,
}

enum Align {
    Left,
    Right,
}

impl Column {
    /// Numbers that need their head to be understood.
    pub(super) const fn numbers(head: &'static str) -> Self {
        Self { head, label: head, align: Align::Right }
    }

    /// Sizes, whose unit says enough.
    pub(super) const fn sizes(head: &'static str) -> Self {
        Self { head, label: "", align: Align::Right }
    }

    /// Words that need no head.
    pub(super) const fn words() -> Self {
        Self { head: "", label: "", align: Align::Left }
    }
}

/// A subject and one value per column; an empty value stays blank.
pub(super) struct Row {
    pub(super) subject: Subject,
    pub(super) values: Vec<(Ink, String)>,
}

impl Row {
    pub(super) fn new(subject: Subject, values: Vec<String>) -> Self {
        Self { subject, values: values.into_iter().map(|value| (Ink::Plain, value)).collect() }
    }

    pub(super) fn in_ink(self, ink: Ink) -> Self {
        let values = self.values.into_iter().map(|(_, value)| (ink, value)).collect();
        Self { subject: self.subject.in_ink(ink), values }
    }
}

/// A title and rows under it.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

impl Table {
    /// The table in `width` columns; nothing at all without rows.
    pub(super) fn lines(&self, width: usize) -> Vec<Line> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let widths: Vec<usize> = (0..self.columns.len()).map(|index| self.column_width(index)).collect();
        let values: usize = widths.iter().map(|width| width + GAP).sum();
        let room = width.saturating_sub(INDENT + values);
        let needed = self.rows.iter().map(|row| row.subject.columns().min(MIN_ROOM)).max();
        if room >= needed.unwrap_or(0) { self.side_by_side(&widths, room) } else { self.stacked(width) }
    }

    fn column_width(&self, index: usize) -> usize {
        let values = self.rows.iter().filter_map(|row| row.values.get(index));
        let widest = values.map(|(_, value)| text::columns(value)).max().unwrap_or(0);
        widest.max(text::columns(self.columns[index].head))
    }

    fn side_by_side(&self, widths: &[usize], room: usize) -> Vec<Line> {
        let source_at = source_column(self.rows.iter().map(|row| &row.subject), room);
        let mut heads = Line::of(Ink::Strong, &self.title);
        let mut lines = Vec::new();
        if heads.columns() > INDENT + room {
            lines.push(std::mem::take(&mut heads));
        }
        let head_values = self.columns.iter().map(|column| (Ink::Faint, column.head));
        self.write_values(&mut heads, widths, room, head_values);
        lines.push(heads);
        for row in &self.rows {
            let mut line = Line::of(Ink::Plain, &" ".repeat(INDENT));
            if row.values.iter().all(|(_, value)| value.is_empty()) {
                // It has the columns of the values for itself.
                let values: usize = widths.iter().map(|width| width + GAP).sum();
                row.subject.write(&mut line, room + values, source_at);
                lines.push(line);
                continue;
            }
            row.subject.write(&mut line, room, source_at);
            let values = row.values.iter().map(|(ink, value)| (*ink, value.as_str()));
            self.write_values(&mut line, widths, room, values);
            lines.push(line);
        }
        lines
    }

    fn write_values<'a>(
        &self,
        line: &mut Line,
        widths: &[usize],
        room: usize,
        values: impl Iterator<Item = (Ink, &'a str)>,
    ) {
        let mut end = INDENT + room;
        for ((column, width), (ink, value)) in self.columns.iter().zip(widths).zip(values) {
            let start = end + GAP;
            end = start + width;
            match column.align {
                Align::Left => line.pad_to(start),
                Align::Right => line.pad_to(end - text::columns(value)),
            }
            line.push(ink, value);
        }
    }

    fn stacked(&self, width: usize) -> Vec<Line> {
        let mut lines = vec![Line::of(Ink::Strong, &self.title)];
        for row in &self.rows {
            let mut line = Line::of(Ink::Plain, &" ".repeat(INDENT));
            row.subject.write(&mut line, width - INDENT, 0);
            lines.push(line);
            lines.extend(self.values_below(row, width));
        }
        lines
    }

    fn values_below(&self, row: &Row, width: usize) -> Vec<Line> {
        let indented = || Line::of(Ink::Plain, &" ".repeat(2 * INDENT));
        let mut lines = Vec::new();
        let mut line = indented();
        for (column, (ink, value)) in self.columns.iter().zip(&row.values) {
            if value.is_empty() {
                continue;
            }
            let label = if column.label.is_empty() { String::new() } else { format!("{} ", column.label) };
            let needed = text::columns(&label) + text::columns(value);
            if line.columns() > 2 * INDENT {
                if line.columns() + GAP + needed <= width {
                    line.push(Ink::Plain, &" ".repeat(GAP));
                } else {
                    lines.push(std::mem::replace(&mut line, indented()));
                }
            }
            line.push(Ink::Faint, &label);
            line.push(*ink, value);
        }
        // A row without values has no line for them.
        if line.columns() > 2 * INDENT {
            lines.push(line);
        }
        lines
    }
}
