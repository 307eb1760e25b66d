//! The three sections about sites: what filled the peak, what is still in use, and the busiest lines.
//!
//! Owns their order and columns. A line that is reached through several stacks is one row in each.

use std::collections::{BTreeMap, HashMap};

use super::View;
use super::line::{Ink, Line};
use super::place::Place;
use super::ranking::{Ranked, Ranking, Tally, merge, rank};
use super::subject::Subject;
use super::table::{Column, Row, Table};
use crate::bytes;
use crate::report::{HolderKind, LiveState, Site};

/// A line that allocates once is not busy.
const MIN_BUSY_ALLOCATIONS: u64 = 2;

pub(super) fn at_peak(view: &View<'_>) -> Vec<Line> {
    let peak = &view.report.peak;
    let places = Places::of(view);
    let parts = peak.sites.iter().filter(|part| part.bytes > 0).map(|part| {
        (places.find(part.site), (), Tally { bytes: part.bytes, count: part.count, ..Tally::default() })
    });
    let ranking = rank(merge(parts), view.rows, |tally| (tally.bytes, tally.count));
    let values = |tally: &Tally| {
        vec![bytes::size(tally.bytes), bytes::share(tally.bytes, peak.bytes), bytes::count(tally.count)]
    };
    let when = peak.at_s.map_or(String::new(), |at_s| format!(" at {}", bytes::duration(at_s)));
    Table {
        title: format!("At the peak: {}{when}", bytes::size(peak.bytes)),
        columns: vec![Column::sizes("bytes"), Column::numbers("share"), Column::numbers("blocks")],
        rows: rows(view, &ranking, |tally, ()| values(tally), |tally| values(tally)),
    }
    .lines(view.width)
}

pub(super) fn still_in_use(view: &View<'_>) -> Vec<Line> {
    let places = Places::of(view);
    let parts = view.report.live.iter().filter(|live| live.bytes > 0 || live.count > 0).map(|live| {
        let tally = Tally { bytes: live.bytes, count: live.count, ..Tally::default() };
        (places.find(live.site), live.state, tally)
    });
    let ranking = rank(merge(parts), view.rows, |tally| (tally.bytes, tally.count));
    let values = |tally: &Tally, state: &str| {
        vec![bytes::size(tally.bytes), bytes::count(tally.count), state.to_owned()]
    };
    let mut table = Table {
        title: format!("Still in use at the end: {}", bytes::size(ranking.total.bytes)),
        columns: vec![Column::sizes("bytes"), Column::numbers("blocks"), Column::words()],
        rows: rows(
            view,
            &ranking,
            |tally, state| values(tally, state_name(state)),
            |tally| values(tally, ""),
        ),
    };
    let shown = ranking.shown.len();
    let holders = ranking.shown.iter().map(|row| held_by(view, &places, row));
    let holders: Vec<Option<Row>> = holders.chain(table.rows[shown..].iter().map(|_| None)).collect();
    table.rows =
        table.rows.into_iter().zip(holders).flat_map(|(row, by)| [Some(row), by]).flatten().collect();
    table.lines(view.width)
}

/// Who holds most of what a row is about, in a row below it.
fn held_by(view: &View<'_>, places: &Places<'_>, row: &Ranked<'_, LiveState>) -> Option<Row> {
    let key = row.place.key();
    let parts = view.report.live.iter();
    let parts: Vec<_> =
        parts.filter(|live| live.state == row.tag && places.find(live.site).key() == key).collect();
    let mut sums: BTreeMap<(&str, HolderKind), u64> = BTreeMap::new();
    for holder in parts.iter().flat_map(|live| &live.holders) {
        let sum = sums.entry((&holder.path, holder.kind)).or_default();
        *sum = sum.saturating_add(holder.bytes);
    }
    // The first of the largest, as the report lists them.
    let first = parts.iter().flat_map(|live| &live.holders).map(|holder| (holder.path.as_str(), holder.kind));
    let (path, kind) = first.rev().max_by_key(|holder| sums.get(holder))?;
    let unlisted = parts.iter().fold(0u64, |sum, live| sum.saturating_add(live.more_holders));
    let more = (sums.len() as u64 - 1).saturating_add(unlisted);
    let kind = if kind == HolderKind::Other { String::new() } else { format!(" ({})", kind_name(kind)) };
    let more = if more == 0 { String::new() } else { format!(", and {} more", bytes::count(more)) };
    let words = format!("  held by {path}{kind}{more}");
    Some(Row::new(Subject::note(&words), vec![String::new(); 3]).in_ink(Ink::Faint))
}

fn kind_name(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Global => "global",
        HolderKind::Local => "local",
        HolderKind::Attribute => "attribute",
        HolderKind::Container => "container",
        HolderKind::Closure => "closure",
        HolderKind::Default => "default",
        HolderKind::Cache => "cache",
        HolderKind::Exception => "exception",
        HolderKind::Cycle => "cycle",
        HolderKind::Generator => "generator",
        HolderKind::Thread => "thread",
        HolderKind::Notebook => "notebook",
        HolderKind::View => "view",
        HolderKind::HostCopy => "host copy",
        HolderKind::Other => "other",
    }
}

pub(super) fn busiest(view: &View<'_>) -> Vec<Line> {
    let parts = view.report.sites.iter().map(|site| {
        let tally =
            Tally { bytes: site.allocated_bytes, count: site.alloc_count, seconds: site.runtime_s.max(0.0) };
        (Place::of(&site.stack, site.label.as_deref()), (), tally)
    });
    let mut busy = merge(parts);
    busy.retain(|row| row.tally.count >= MIN_BUSY_ALLOCATIONS);
    let mut ranking = rank(busy, view.rows, |tally| (tally.count, tally.bytes));
    // The others are many and small here; their sum would say nothing.
    ranking.others = 0;
    let values = |tally: &Tally| {
        vec![
            bytes::count(tally.count),
            bytes::size(tally.bytes),
            bytes::size(tally.bytes / tally.count.max(1)),
            bytes::duration(tally.seconds),
        ]
    };
    Table {
        title: "Busiest lines, by allocations".to_owned(),
        columns: vec![
            Column::numbers("count"),
            Column::sizes("bytes"),
            Column::numbers("each"),
            Column::numbers("runtime"),
        ],
        rows: rows(view, &ranking, |tally, ()| values(tally), |tally| values(tally)),
    }
    .lines(view.width)
}

/// Table rows of a ranking: one per place, and one for all the others if there are any.
pub(super) fn rows<Tag: Copy>(
    view: &View<'_>,
    ranking: &Ranking<'_, Tag>,
    values: impl Fn(&Tally, Tag) -> Vec<String>,
    others: impl Fn(&Tally) -> Vec<String>,
) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for ranked in &ranking.shown {
        rows.push(Row::new(ranked.place.subject(view.screen), values(&ranked.tally, ranked.tag)));
    }
    if ranking.others > 0 {
        let subject = Subject::note(&format!("… and {} more lines", bytes::count(ranking.others as u64)));
        rows.push(Row::new(subject, others(&ranking.others_tally)).in_ink(Ink::Faint));
    }
    rows
}

fn state_name(state: LiveState) -> &'static str {
    match state {
        LiveState::Referenced => "referenced",
        LiveState::InFlight => "in flight",
        LiveState::Cached => "cached",
        LiveState::Runtime => "runtime's own",
    }
}

/// Sites by their number.
struct Places<'a>(HashMap<u64, &'a Site>);

impl<'a> Places<'a> {
    fn of(view: &View<'a>) -> Self {
        Self(view.report.sites.iter().map(|site| (site.id, site)).collect())
    }

    fn find(&self, id: u64) -> Place<'a> {
        self.0.get(&id).map_or(Place::unknown(), |site| Place::of(&site.stack, site.label.as_deref()))
    }
}
