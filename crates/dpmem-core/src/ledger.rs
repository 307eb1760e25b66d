//! The ledger: what every event does to the counters, in the order that keeps them true.
//!
//! Safe to call from any number of threads. An allocation is entered after the runtime made it and before its pointer
//! is handed on, a free before it is forwarded; so an address is in the map for no longer than the block exists. A
//! block whose free nobody saw is taken out when its address is handed out for another of about its size.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::append;
use crate::blocks::{Block, BlockMap};
use crate::content::{self, Data};
use crate::history::History;
use crate::kind::{DeviceId, Direction, Kind, MAX_DEVICES};
use crate::launch::{LaunchCounts, LaunchTable};
use crate::peak::{PeakClock, Tick};
use crate::region::RegionTable;
use crate::rows::{DeviceRows, Rows};
use crate::site::{FreedBy, SiteCache, SiteId, SiteKey, SiteTable, origin_of, site_hash};
use crate::snapshot::{
    LaunchSnapshot, LiveBlock, PeakSnapshot, RowSnapshot, SiteSnapshot, Snapshot, Totals, TransferSnapshot,
};
use crate::stack::{Frame, Origin, RawFrame, StackId, StackTable};
use crate::transfer::{TransferId, TransferTable};

/// How often a snapshot looks again when other threads set new peaks meanwhile.
const SNAPSHOT_TRIES: usize = 100;
static LEDGERS: AtomicU64 = AtomicU64::new(0);

/// An allocation that the runtime made.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// Where the block starts.
    pub address: usize,
    /// Its size as it was asked for.
    pub bytes: u64,
    /// Its kind.
    pub kind: Kind,
    /// Its device.
    pub device: DeviceId,
    /// Its site.
    pub site: SiteId,
    /// The time after the call, in ticks.
    pub now: u64,
    /// Ticks spent in the runtime's own call.
    pub runtime_ticks: u64,
}

/// Counters, sites and live blocks of one recording.
pub struct Ledger {
    id: u64,
    origin_ticks: u64,
    rows: Rows,
    clock: PeakClock,
    peak_ticks: AtomicU64,
    stacks: StackTable,
    sites: SiteTable,
    transfers: TransferTable,
    launches: LaunchTable,
    blocks: BlockMap,
    history: History,
    /// Peaks of open regions.
    pub regions: RegionTable,
    unknown_frees: AtomicU64,
    missed_frees: AtomicU64,
    fill_count: AtomicU64,
    filled_bytes: AtomicU64,
}

impl Ledger {
    /// An empty ledger whose time starts at `origin_ticks`; `history_shift` sets the first interval of the history to
    /// 2^`history_shift` ticks.
    pub fn new(origin_ticks: u64, history_shift: u32) -> Self {
        Ledger::with_capacity(origin_ticks, history_shift, append::CAPACITY)
    }

    /// The same with rows that may be lent by a map.
    pub fn with_rows(rows: Rows, origin_ticks: u64, history_shift: u32) -> Self {
        Ledger { rows, ..Ledger::new(origin_ticks, history_shift) }
    }

    /// The same with room for `sites` sites and stacks only.
    pub fn with_capacity(origin_ticks: u64, history_shift: u32, sites: usize) -> Self {
        Ledger {
            id: LEDGERS.fetch_add(1, Relaxed) + 1,
            origin_ticks,
            rows: Rows::own(),
            clock: PeakClock::default(),
            peak_ticks: AtomicU64::new(0),
            stacks: StackTable::new(sites),
            sites: SiteTable::new(sites),
            transfers: TransferTable::new(sites),
            launches: LaunchTable::new(sites),
            blocks: BlockMap::default(),
            history: History::new(origin_ticks, history_shift),
            regions: RegionTable::default(),
            unknown_frees: AtomicU64::new(0),
            missed_frees: AtomicU64::new(0),
            fill_count: AtomicU64::new(0),
            filled_bytes: AtomicU64::new(0),
        }
    }

    /// A number that no other ledger of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The site for a stack; `without` says why `raw` is empty, if it is. `resolve` runs for a new stack only, with no
    /// lock held.
    pub fn site(
        &self,
        cache: &mut SiteCache,
        raw: &[RawFrame],
        without: Origin,
        place: (Kind, DeviceId),
        resolve: impl Fn(&RawFrame) -> Frame,
    ) -> SiteId {
        let (kind, device) = place;
        let no_stack = origin_of(raw, without);
        let stack_hash = no_stack.map_or_else(|| StackTable::hash(raw), |_| without as u64);
        let hash = site_hash(stack_hash, kind, device);
        if let Some(id) = cache.find(self.id, hash) {
            let key = self.sites.get(id).key;
            let same_stack =
                no_stack.map_or_else(|| self.stacks.is(key.stack, raw), |stack| stack == key.stack);
            if same_stack && (key.kind, key.device) == place {
                return id;
            }
        }
        let stack = no_stack.unwrap_or_else(|| self.stacks.intern(raw, stack_hash, resolve));
        let id = self.sites.intern(SiteKey { kind, device, stack });
        cache.store(self.id, hash, id);
        id
    }

    /// The frames of a site's stack, innermost first; empty if there is none.
    pub fn frames(&self, site: SiteId) -> Arc<[Frame]> {
        self.stacks.frames(self.sites.get(site).key.stack)
    }

    /// The place where copies of `direction` at a stack are counted.
    pub fn transfer(
        &self,
        raw: &[RawFrame],
        without: Origin,
        direction: Direction,
        resolve: impl Fn(&RawFrame) -> Frame,
    ) -> TransferId {
        let stack = origin_of(raw, without)
            .unwrap_or_else(|| self.stacks.intern(raw, StackTable::hash(raw), resolve));
        self.transfers.intern(direction, stack)
    }

    /// Enters an allocation.
    pub fn allocated(&self, allocation: Allocation) {
        let tick = self.take_in(&allocation);
        self.sites.get(allocation.site).allocated(
            tick,
            allocation.bytes,
            allocation.now,
            allocation.runtime_ticks,
        );
        self.file(allocation);
    }

    /// Enters a block that existed before; nothing if its address is known already.
    pub fn adopt(&self, allocation: Allocation) {
        if self.blocks.find(allocation.address).is_some_and(|(base, _)| base == allocation.address) {
            return;
        }
        let tick = self.take_in(&allocation);
        self.sites.get(allocation.site).adopted(tick, allocation.bytes);
        self.file(allocation);
    }

    /// Enters an allocation that was refused; `for_lack` of memory, or for something else about it.
    pub fn failed(&self, site: SiteId, for_lack: bool) {
        self.sites.get(site).failed(for_lack);
    }

    /// Enters a free that is about to be forwarded. The block, if the address was known, and the bytes that are left in
    /// use. `by` is handed the user's frame as it was at the allocation, if it is wanted where the free is made.
    pub fn freeing(
        &self,
        address: usize,
        by: impl FnOnce(Option<RawFrame>) -> FreedBy,
    ) -> Option<(Block, u64)> {
        let Some(block) = self.blocks.remove(address) else {
            self.unknown_frees.fetch_add(1, Relaxed);
            return None;
        };
        let site = self.sites.get(block.site);
        let user = site.wants_place_of_free().then(|| self.stacks.user_frame(site.key.stack)).flatten();
        let tick = self.take_out(&block, by(user));
        Some((block, tick.current))
    }

    /// Enters that the free went well: when it ended, with `left` bytes in use, and how long the runtime took.
    pub fn freed(&self, block: &Block, left: u64, now: u64, runtime_ticks: u64) {
        self.sites.get(block.site).spent_freeing(runtime_ticks);
        self.history.record(now, left);
    }

    /// Takes [`Ledger::freeing`] back: the runtime refused.
    pub fn free_refused(&self, address: usize, block: Block) {
        let Block { bytes, site, device, kind, since } = block;
        let tick =
            self.take_in(&Allocation { address, bytes, kind, device, site, now: since, runtime_ticks: 0 });
        self.sites.get(site).restored(tick, bytes);
        self.blocks.insert(address, block);
    }

    /// Enters a copy.
    pub fn transferred(&self, transfer: TransferId, bytes: u64, now: u64) {
        self.transfers.get(transfer).add(bytes, now);
    }

    /// Notes where in host memory a copy came from.
    pub fn came_from(&self, transfer: TransferId, address: usize) {
        self.transfers.get(transfer).came_from(address);
    }

    /// Compares what a copy carried with what earlier ones at its stack did.
    pub fn compare_content(&self, transfer: TransferId, data: &dyn Data) {
        if let Some(sample) = content::sample(data) {
            self.transfers.get(transfer).compare(data.len() as u64, sample, || content::whole(data));
        }
    }

    /// Enters kernel launches at a stack: how many, and when.
    pub fn launched(
        &self,
        raw: &[RawFrame],
        without: Origin,
        (count, now): (u64, u64),
        resolve: impl Fn(&RawFrame) -> Frame,
    ) {
        let stack = origin_of(raw, without)
            .unwrap_or_else(|| self.stacks.intern(raw, StackTable::hash(raw), resolve));
        self.launches.add(stack, count, now);
    }

    /// Enters a fill.
    pub fn filled(&self, bytes: u64) {
        self.fill_count.fetch_add(1, Relaxed);
        self.filled_bytes.fetch_add(bytes, Relaxed);
    }

    /// Number of fills and their bytes.
    pub fn fills(&self) -> (u64, u64) {
        (self.fill_count.load(Relaxed), self.filled_bytes.load(Relaxed))
    }

    /// The blocks in use.
    pub fn blocks(&self) -> &BlockMap {
        &self.blocks
    }

    /// Bytes in use over all devices and kinds.
    pub fn current_bytes(&self) -> u64 {
        self.clock.read().current
    }

    /// Starts the peak and its composition anew from what is in use at `now`.
    pub fn restart_peak(&self, now: u64) {
        self.clock.restart();
        self.peak_ticks.fetch_max(now, Relaxed);
    }

    /// What is in use on one device.
    pub fn rows(&self, device: DeviceId) -> &DeviceRows {
        &self.rows[device.index()]
    }

    /// What has been done at sites that `wanted` accepts.
    pub fn totals(&self, wanted: impl Fn(Kind, DeviceId) -> bool) -> Totals {
        let mut totals = Totals::default();
        for (_, site) in self.sites.iter().filter(|(_, site)| wanted(site.key.kind, site.key.device)) {
            totals.add(&site.counts());
        }
        totals
    }

    /// Everything at one moment, `now`. Exact if no thread allocates meanwhile; else the peak's composition is retried
    /// and left out if it can't be had.
    pub fn snapshot(&self, now: u64) -> Snapshot {
        let sites: Vec<_> = self.sites.iter().map(|(id, _)| self.site_snapshot(id)).collect();
        let transfers: Vec<_> = self.transfers.iter().map(|t| self.transfer_snapshot(t)).collect();
        let rows = self.row_snapshots();
        let (history_interval_ticks, history) = self.history.samples(now);
        let unknown_frees = self.unknown_frees.load(Relaxed);
        let of_runtime = |origin: Option<Origin>| origin == Some(Origin::RuntimeThread);
        let row_events = |r: &RowSnapshot| r.totals.alloc_count + r.totals.free_count + r.totals.failed_count;
        Snapshot {
            peak: self.peak_snapshot(),
            current_bytes: self.current_bytes(),
            events: rows.iter().map(row_events).sum::<u64>()
                + transfers.iter().map(|t| t.counts.count).sum::<u64>()
                + self.fills().0
                + unknown_frees,
            unattributed_events: sites
                .iter()
                .filter(|s| of_runtime(s.origin))
                .map(|s| s.alloc_count + s.failed_count)
                .sum::<u64>()
                + transfers.iter().filter(|t| of_runtime(t.origin)).map(|t| t.counts.count).sum::<u64>(),
            unknown_frees,
            missed_frees: self.missed_frees.load(Relaxed),
            live: self.live_blocks(),
            rows,
            sites,
            transfers,
            launches: self
                .launches
                .iter()
                .map(|(stack, counts)| self.launch_snapshot(stack, counts))
                .collect(),
            history_interval_ticks,
            history,
        }
    }

    /// What every block does that comes into use.
    fn take_in(&self, allocation: &Allocation) -> Tick {
        let Allocation { bytes, kind, device, now, .. } = *allocation;
        self.rows(device).add(kind, bytes);
        let tick = self.clock.add(bytes);
        if tick.set_peak {
            self.peak_ticks.fetch_max(now, Relaxed);
        }
        self.regions.record(tick.current);
        self.history.record(now, tick.current);
        tick
    }

    fn file(&self, allocation: Allocation) {
        let Allocation { address, bytes, kind, device, site, now, .. } = allocation;
        let block = Block { bytes, site, device, kind, since: now };
        if let Some(stale) = self.blocks.insert(address, block) {
            self.missed_frees.fetch_add(1, Relaxed);
            self.take_out(&stale, FreedBy::Runtime);
        }
    }

    fn take_out(&self, block: &Block, by: FreedBy) -> Tick {
        self.rows(block.device).sub(block.kind, block.bytes);
        let tick = self.clock.sub(block.bytes);
        self.sites.get(block.site).freed(tick, block.bytes, by);
        tick
    }

    fn row_snapshots(&self) -> Vec<RowSnapshot> {
        let mut totals = vec![[Totals::default(); Kind::ALL.len()]; MAX_DEVICES];
        for (_, site) in self.sites.iter() {
            totals[site.key.device.index()][site.key.kind as usize].add(&site.counts());
        }
        let places =
            (0..MAX_DEVICES).map(DeviceId::new).flat_map(|device| Kind::ALL.map(|kind| (device, kind)));
        let rows = places.map(|(device, kind)| RowSnapshot {
            device,
            kind,
            in_use: self.rows(device).reading(kind),
            totals: totals[device.index()][kind as usize],
        });
        rows.filter(|row| row.totals.failed_count + row.in_use.peak.count > 0).collect()
    }

    fn site_snapshot(&self, id: SiteId) -> SiteSnapshot {
        let site = self.sites.get(id);
        let counts = site.counts();
        let (live_bytes, live_count) = counts.composition.live();
        SiteSnapshot {
            id,
            kind: site.key.kind,
            device: site.key.device,
            frames: self.stacks.frames(site.key.stack),
            origin: site.key.stack.as_origin(),
            alloc_count: counts.alloc_count,
            allocated_bytes: counts.allocated_bytes,
            free_count: counts.free_count,
            failed_count: counts.failed_count,
            out_of_memory_count: counts.out_of_memory_count,
            peak_bytes: counts.peak_bytes,
            live_bytes: live_bytes.max(0) as u64,
            live_count: live_count.max(0) as u64,
            runtime_ticks: counts.runtime_ticks,
            pattern: counts.pattern,
            growth: site.growth(),
            user_instruction: self.stacks.user_frame(site.key.stack).map(|raw| raw.instruction),
        }
    }

    fn launch_snapshot(&self, stack: StackId, counts: LaunchCounts) -> LaunchSnapshot {
        let LaunchCounts { count, first_ticks, last_ticks } = counts;
        LaunchSnapshot { frames: self.stacks.frames(stack), count, first_ticks, last_ticks }
    }

    fn transfer_snapshot(&self, transfer: &crate::transfer::Transfer) -> TransferSnapshot {
        TransferSnapshot {
            direction: transfer.direction,
            frames: self.stacks.frames(transfer.stack),
            origin: transfer.stack.as_origin(),
            counts: transfer.counts(),
            user_instruction: self.stacks.user_frame(transfer.stack).map(|raw| raw.instruction),
        }
    }

    fn live_blocks(&self) -> Vec<LiveBlock> {
        let mut blocks: Vec<_> = self
            .blocks
            .to_vec()
            .into_iter()
            .map(|(address, Block { bytes, site, device, kind, since })| LiveBlock {
                address,
                bytes,
                kind,
                device,
                site,
                since,
            })
            .collect();
        blocks.sort_by_key(|block| (block.since, block.address));
        blocks
    }

    fn peak_snapshot(&self) -> PeakSnapshot {
        let mut peak = PeakSnapshot::default();
        for _ in 0..SNAPSHOT_TRIES {
            let reading = self.clock.read();
            peak.bytes = reading.peak;
            peak.at_ticks = self.peak_ticks.load(Relaxed).saturating_sub(self.origin_ticks);
            let mut sites = Vec::new();
            for (id, site) in self.sites.iter() {
                match site.counts().composition.at_peak(reading) {
                    Some((bytes, count)) if count > 0 => sites.push((id, bytes.max(0) as u64, count as u64)),
                    Some(_) => {}
                    None => sites.push((id, u64::MAX, 0)),
                }
            }
            if sites.iter().map(|&(_, bytes, _)| bytes).fold(0u64, u64::saturating_add) == reading.peak {
                peak.sites = Some(sites);
                break;
            }
        }
        peak
    }
}

#[cfg(all(test, not(loom)))]
#[path = "ledger_tests.rs"]
mod tests;
