//! Rows ranked by what they add up to, one per place.
//!
//! Owns merging and cutting: things at the same place (and of the same tag) become one row, the largest rows are shown
//! and the others are summed. Ties are broken by place, so that equal reports give equal screens.

use std::collections::BTreeMap;

use super::place::Place;

/// What is added up at one place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) bytes: u64,
    pub(super) count: u64,
    pub(super) seconds: f64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.count = self.count.saturating_add(other.count);
        self.seconds += other.seconds;
    }
}

/// One row: a place, what tells it apart from others of that place, and its sums.
pub(super) struct Ranked<'a, Tag> {
    pub(super) place: Place<'a>,
    pub(super) tag: Tag,
    pub(super) tally: Tally,
}

/// The rows to show, largest first, and what became of the others.
pub(super) struct Ranking<'a, Tag> {
    pub(super) shown: Vec<Ranked<'a, Tag>>,
    pub(super) others: usize,
    pub(super) others_tally: Tally,
    pub(super) total: Tally,
}

/// Merges `items` by place and tag.
pub(super) fn merge<'a, Tag: Copy + Ord>(
    items: impl Iterator<Item = (Place<'a>, Tag, Tally)>,
) -> Vec<Ranked<'a, Tag>> {
    let mut rows = BTreeMap::new();
    for (place, tag, tally) in items {
        let row = rows.entry((place.key(), tag)).or_insert(Ranked { place, tag, tally: Tally::default() });
        row.tally.add(tally);
    }
    rows.into_values().collect()
}

/// Ranks `rows` by `measure` and keeps the first `limit`. One row more is shown rather than summed up in a row of its
/// own.
pub(super) fn rank<Tag, Measure: Ord>(
    mut rows: Vec<Ranked<'_, Tag>>,
    limit: usize,
    measure: impl Fn(&Tally) -> Measure,
) -> Ranking<'_, Tag> {
    // The sort is stable and merged rows come in the order of their places.
    rows.sort_by_key(|row| std::cmp::Reverse(measure(&row.tally)));
    let sum = |rows: &[Ranked<'_, Tag>]| {
        rows.iter().fold(Tally::default(), |mut sum, row| {
            sum.add(row.tally);
            sum
        })
    };
    let total = sum(&rows);
    let kept = if rows.len() == limit + 1 { rows.len() } else { rows.len().min(limit) };
    let others = rows.split_off(kept);
    Ranking { others: others.len(), others_tally: sum(&others), shown: rows, total }
}
