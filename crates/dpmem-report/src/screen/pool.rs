//! What the pool did, and the limit. Owns nothing but this section.

use super::View;
use super::line::Line;
use super::subject::Subject;
use super::table::{Column, Row, Table};
use crate::bytes;

/// Less host memory than that is the library's own, a few bytes for each of its modules.
const TOLD: u64 = 1 << 20;

/// Nothing where no pool served and no limit was set.
pub(super) fn lines(view: &View<'_>) -> Vec<Line> {
    let Some(pool) = &view.report.pool else { return Vec::new() };
    let title = pool
        .limit_bytes
        .map_or_else(|| "Pool".to_owned(), |limit| format!("Pool, limit {}", bytes::size(limit)));
    let columns = vec![
        Column::numbers("cached"),
        Column::numbers("peak"),
        Column::numbers("hits"),
        Column::numbers("misses"),
        Column::numbers("rescued"),
    ];
    let values = vec![
        bytes::size(pool.cached_bytes),
        bytes::size(pool.peak_reserved_bytes),
        bytes::count(pool.hits),
        bytes::count(pool.misses),
        bytes::count(pool.rescues),
    ];
    let mut rows = vec![Row::new(Subject::note("reserved"), values)];
    if pool.host.peak_reserved_bytes >= TOLD {
        let sizes = [pool.host.cached_bytes, pool.host.peak_reserved_bytes].map(bytes::size);
        let blank = std::iter::repeat_n(String::new(), columns.len() - sizes.len());
        rows.push(Row::new(
            Subject::note("host memory (no limit)"),
            sizes.into_iter().chain(blank).collect(),
        ));
    }
    Table { title, columns, rows }.lines(view.width)
}
