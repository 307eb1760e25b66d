//! Bytes copied between host and devices, by line. Owns nothing but this section.

use super::View;
use super::line::Line;
use super::place::Place;
use super::ranking::{Tally, merge, rank};
use super::sites::rows;
use super::table::{Column, Table};
use crate::bytes;
use crate::report::Direction;

pub(super) fn lines(view: &View<'_>) -> Vec<Line> {
    let parts = view.report.transfers.iter().filter(|transfer| transfer.count > 0).map(|transfer| {
        let tally = Tally { bytes: transfer.bytes, count: transfer.count, ..Tally::default() };
        (Place::of(&transfer.stack, None), transfer.direction, tally)
    });
    let ranking = rank(merge(parts), view.rows, |tally| (tally.bytes, tally.count));
    let values = |tally: &Tally, direction: &str| {
        vec![direction.to_owned(), bytes::size(tally.bytes), bytes::count(tally.count)]
    };
    Table {
        title: format!("Copies: {}", bytes::size(ranking.total.bytes)),
        columns: vec![Column::words(), Column::sizes("bytes"), Column::numbers("copies")],
        rows: rows(
            view,
            &ranking,
            |tally, direction| values(tally, direction_name(direction)),
            |tally| values(tally, ""),
        ),
    }
    .lines(view.width)
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "host → device",
        Direction::DeviceToHost => "device → host",
        Direction::DeviceToDevice => "device → device",
    }
}
