//! Blocks in use at the end of a run, each with its state and its holders: as rows of the report, and as what rules
//! judge by.

use std::collections::{HashMap, HashSet};

use dpmem_core::findings::{self, BlockState, CacheUse, HolderKind, HolderRecord};
use dpmem_core::{LiveBlock, SiteId, Snapshot};
use dpmem_hook::Recording;
use dpmem_report as report;

use crate::holders::{self, HeldBlock, HolderFacts};
use crate::report::{RunFacts, number};

/// Holders that a row lists.
const MAX_HOLDERS: usize = 10;

/// The blocks in use, and what the search for holders found out about each.
pub(crate) struct Live<'a> {
    blocks: Vec<(&'a LiveBlock, BlockState, Option<&'a HeldBlock>)>,
    /// Whether the search looked at everything.
    complete: bool,
}

impl<'a> Live<'a> {
    pub(crate) fn of(facts: &'a RunFacts, recording: &Recording, snapshot: &'a Snapshot) -> Self {
        let held = facts.held.iter().flat_map(|held| held.get().blocks.iter());
        let held: HashMap<usize, &HeldBlock> = held.map(|block| (block.address, block)).collect();
        let all = recording.ledger.blocks();
        let referenced: HashSet<usize> =
            facts.referenced.iter().filter_map(|&address| all.find(address)).map(|(base, _)| base).collect();
        let blocks = snapshot.live.iter().map(|block| {
            let found = held.get(&block.address).copied();
            (block, state(facts, found, referenced.contains(&block.address)), found)
        });
        let complete = facts.held.as_ref().is_some_and(|held| held.get().complete);
        Live { blocks: blocks.collect(), complete }
    }

    /// By site and state, largest first, each row with its largest holders.
    pub(crate) fn rows(&self) -> Vec<report::Live> {
        let mut rows: HashMap<(SiteId, BlockState), Row> = HashMap::new();
        for (block, state, found) in &self.blocks {
            rows.entry((block.site, *state)).or_default().add(block.bytes, *found);
        }
        let mut rows: Vec<_> =
            rows.into_iter().map(|((site, state), row)| row.into_report(site, state)).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.site, row.state));
        rows
    }

    /// For the rules; none if not everything was looked at, since a holder that is missing would mislead them.
    pub(crate) fn records(&self) -> Vec<findings::HeldBlock> {
        let blocks = self.blocks.iter().filter(|_| self.complete);
        let record =
            |(block, state, found): &(&LiveBlock, BlockState, Option<&HeldBlock>)| findings::HeldBlock {
                site: block.site,
                device: block.device,
                bytes: block.bytes,
                state: *state,
                covered_bytes: found.map(|found| found.covered_bytes),
                holders: found.iter().flat_map(|found| &found.holders).map(record).collect(),
            };
        blocks.map(record).collect()
    }
}

fn record(holder: &HolderFacts) -> HolderRecord {
    HolderRecord {
        kind: holder.kind,
        path: holder.path.clone(),
        notebook: holder.notebook,
        // A queue may be full from now on; that it only grows can't be said of it.
        owner: holder.owner.clone().filter(|_| !holder.owner_is_queue),
        cache: holder.cache.map(|cache| CacheUse {
            max_entries: cache.maxsize,
            entries: cache.currsize,
            misses: cache.misses,
        }),
    }
}

/// Why a block is still there. What the search can't tell is in flight while work is queued, and else the runtime's
/// own.
fn state(facts: &RunFacts, found: Option<&HeldBlock>, referenced: bool) -> BlockState {
    match found.map(|found| found.state) {
        Some(holders::State::Referenced) => BlockState::Referenced,
        Some(holders::State::InFlight) => BlockState::InFlight,
        _ if referenced => BlockState::Referenced,
        _ if facts.drained => BlockState::Runtime,
        _ => BlockState::InFlight,
    }
}

/// Blocks of one site in one state.
#[derive(Default)]
struct Row {
    bytes: u64,
    count: u64,
    holders: HashMap<(HolderKind, String), u64>,
    more_holders: u64,
}

impl Row {
    fn add(&mut self, bytes: u64, found: Option<&HeldBlock>) {
        self.bytes += bytes;
        self.count += 1;
        for holder in found.iter().flat_map(|found| &found.holders) {
            *self.holders.entry((holder.kind, holder.path.clone())).or_default() += bytes;
        }
        self.more_holders += found.map_or(0, |found| found.more_holders as u64);
    }

    fn into_report(self, site: SiteId, state: BlockState) -> report::Live {
        let mut holders: Vec<_> = self.holders.into_iter().collect();
        // Largest first; of equals the most telling, and then the shortest.
        holders.sort_by_cached_key(|((kind, path), bytes)| {
            (std::cmp::Reverse(*bytes), *kind, path.chars().count(), path.clone())
        });
        let more_holders = self.more_holders + holders.len().saturating_sub(MAX_HOLDERS) as u64;
        let holders = holders.into_iter().take(MAX_HOLDERS).map(|((kind, path), bytes)| report::Holder {
            kind: kind_in_report(kind),
            path,
            bytes,
        });
        let state = match state {
            BlockState::Referenced => report::LiveState::Referenced,
            BlockState::InFlight => report::LiveState::InFlight,
            BlockState::Cached => report::LiveState::Cached,
            BlockState::Runtime => report::LiveState::Runtime,
        };
        let holders = holders.collect();
        report::Live {
            site: number(site),
            bytes: self.bytes,
            count: self.count,
            state,
            holders,
            more_holders,
        }
    }
}

fn kind_in_report(kind: HolderKind) -> report::HolderKind {
    match kind {
        HolderKind::Exception => report::HolderKind::Exception,
        HolderKind::Cache => report::HolderKind::Cache,
        HolderKind::Cycle => report::HolderKind::Cycle,
        HolderKind::Generator => report::HolderKind::Generator,
        HolderKind::Closure => report::HolderKind::Closure,
        HolderKind::Default => report::HolderKind::Default,
        HolderKind::Notebook => report::HolderKind::Notebook,
        HolderKind::Thread => report::HolderKind::Thread,
        HolderKind::HostCopy => report::HolderKind::HostCopy,
        HolderKind::View => report::HolderKind::View,
        HolderKind::Container => report::HolderKind::Container,
        HolderKind::Attribute => report::HolderKind::Attribute,
        HolderKind::Local => report::HolderKind::Local,
        HolderKind::Global => report::HolderKind::Global,
        HolderKind::Other => report::HolderKind::Other,
    }
}
