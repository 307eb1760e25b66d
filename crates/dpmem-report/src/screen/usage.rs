//! The table of USM in use per device and kind. Owns nothing but this section.

use super::View;
use super::line::{Ink, Line};
use super::subject::Subject;
use super::table::{Column, Row, Table};
use crate::bytes;
use crate::report::{Usm, UsmKind};

/// Whether anything was ever asked for or found in this row.
pub(super) fn is_used(row: &Usm) -> bool {
    row.alloc_count > 0 || row.failed_count > 0 || row.current_bytes > 0 || row.peak_bytes > 0
}

pub(super) fn lines(view: &View<'_>) -> Vec<Line> {
    let used: Vec<&Usm> = view.report.usm.iter().filter(|row| is_used(row)).collect();
    if used.is_empty() {
        let verb = if view.report.recording.complete { "made" } else { "recorded" };
        return vec![Line::of(Ink::Plain, &format!("no USM allocation was {verb}"))];
    }
    let any_failed = used.iter().any(|row| row.failed_count > 0);
    let mut columns = vec![
        Column::numbers("now"),
        Column::numbers("peak"),
        Column::numbers("allocated"),
        Column::numbers("allocations"),
        Column::numbers("frees"),
    ];
    if any_failed {
        columns.push(Column::numbers("failed"));
    }
    let rows = used.into_iter().map(|row| table_row(row, any_failed)).collect();
    Table { title: "USM".to_owned(), columns, rows }.lines(view.width)
}

fn table_row(usm: &Usm, any_failed: bool) -> Row {
    let kind = match usm.kind {
        UsmKind::Device => "device",
        UsmKind::Host => "host",
        UsmKind::Shared => "shared",
    };
    let subject = match &usm.device {
        Some(device) => format!("{device} {kind}"),
        None => kind.to_owned(),
    };
    let mut row = Row::new(
        Subject::note(&subject),
        vec![
            bytes::size(usm.current_bytes),
            bytes::size(usm.peak_bytes),
            bytes::size(usm.allocated_bytes),
            bytes::count(usm.alloc_count),
            bytes::count(usm.free_count),
        ],
    );
    if any_failed {
        let ink = if usm.failed_count > 0 { Ink::Alarm } else { Ink::Plain };
        row.values.push((ink, bytes::count(usm.failed_count)));
    }
    row
}
