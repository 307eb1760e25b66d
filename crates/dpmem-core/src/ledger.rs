//! The ledger: what every event does to the counters, in the order that keeps them true.
//!
//! Safe to call from any number of threads. An allocation is entered after the runtime made it and before its pointer
//! is handed on, a free before it is forwarded; so an address is in the map for no longer than the block exists, and
//! two entries never share an address.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::append;
use crate::blocks::{Block, BlockMap};
use crate::history::History;
use crate::kind::{DeviceId, Direction, Kind, MAX_DEVICES};
use crate::peak::{PeakClock, Tick};
use crate::region::RegionTable;
use crate::rows::Row;
use crate::site::{SiteCache, SiteId, SiteKey, SiteTable, origin_of, site_hash};
use crate::snapshot::{LiveBlock, PeakSnapshot, RowSnapshot, SiteSnapshot, Snapshot, TransferSnapshot};
use crate::stack::{Frame, Origin, RawFrame, StackTable};
use crate::transfer::{TransferId, TransferTable};

const KINDS: usize = Kind::ALL.len();
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
    rows: Box<[[Row; KINDS]]>,
    /// Device and shared memory together, per device: what a device's accounting functions answer.
    totals: Box<[Row]>,
    clock: PeakClock,
    peak_ticks: AtomicU64,
    stacks: StackTable,
    sites: SiteTable,
    transfers: TransferTable,
    blocks: BlockMap,
    history: History,
    /// Peaks of open regions.
    pub regions: RegionTable,
    sequence: AtomicU64,
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

    /// The same with room for `sites` sites and stacks only.
    pub fn with_capacity(origin_ticks: u64, history_shift: u32, sites: usize) -> Self {
        Ledger {
            id: LEDGERS.fetch_add(1, Relaxed) + 1,
            origin_ticks,
            rows: (0..MAX_DEVICES).map(|_| Default::default()).collect(),
            totals: (0..MAX_DEVICES).map(|_| Row::default()).collect(),
            clock: PeakClock::default(),
            peak_ticks: AtomicU64::new(0),
            stacks: StackTable::new(sites),
            sites: SiteTable::new(sites),
            transfers: TransferTable::new(sites),
            blocks: BlockMap::default(),
            history: History::new(origin_ticks, history_shift),
            regions: RegionTable::default(),
            sequence: AtomicU64::new(0),
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
        let Allocation { bytes, site, .. } = allocation;
        self.row(allocation.device, allocation.kind).allocated(bytes);
        if allocation.kind.on_device() {
            self.totals[allocation.device.index()].allocated(bytes);
        }
        let tick = self.clock.add(bytes);
        let site = self.sites.get(site);
        site.allocated(tick, bytes);
        site.spent(allocation.runtime_ticks);
        self.grown(tick, allocation.now);
        self.file(allocation);
    }

    /// Enters a block that existed before; nothing if its address is known already.
    pub fn adopt(&self, allocation: Allocation) {
        if self.blocks.find(allocation.address).is_some_and(|(base, _)| base == allocation.address) {
            return;
        }
        self.row(allocation.device, allocation.kind).adopted(allocation.bytes);
        if allocation.kind.on_device() {
            self.totals[allocation.device.index()].adopted(allocation.bytes);
        }
        let tick = self.clock.add(allocation.bytes);
        self.sites.get(allocation.site).adopted(tick, allocation.bytes);
        self.grown(tick, allocation.now);
        self.file(allocation);
    }

    /// Enters an allocation that the runtime refused.
    pub fn failed(&self, kind: Kind, device: DeviceId, site: SiteId) {
        self.row(device, kind).failed();
        if kind.on_device() {
            self.totals[device.index()].failed();
        }
        self.sites.get(site).failed();
    }

    /// Enters a free that is about to be forwarded. The block, if the address was known.
    pub fn freeing(&self, address: usize, now: u64) -> Option<Block> {
        let Some(block) = self.blocks.remove(address) else {
            self.unknown_frees.fetch_add(1, Relaxed);
            return None;
        };
        self.take_out(&block, now);
        Some(block)
    }

    /// Takes [`Ledger::freeing`] back: the runtime refused.
    pub fn free_refused(&self, address: usize, block: Block) {
        self.row(block.device, block.kind).restored(block.bytes);
        if block.kind.on_device() {
            self.totals[block.device.index()].restored(block.bytes);
        }
        let tick = self.clock.add(block.bytes);
        self.sites.get(block.site).restored(tick, block.bytes);
        self.blocks.insert(address, block);
    }

    /// Adds the time of a free to the site that allocated the block.
    pub fn spent_freeing(&self, block: &Block, ticks: u64) {
        self.sites.get(block.site).spent(ticks);
    }

    /// Enters a copy.
    pub fn transferred(&self, transfer: TransferId, bytes: u64) {
        self.transfers.get(transfer).add(bytes);
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

    /// How many allocations there have been: the `sequence` that the next block gets.
    pub fn next_sequence(&self) -> u64 {
        self.sequence.load(Relaxed)
    }

    /// The counters of one device and kind.
    pub fn row(&self, device: DeviceId, kind: Kind) -> &Row {
        &self.rows[device.index()][kind as usize]
    }

    /// The counters of device and shared memory of one device together.
    pub fn total(&self, device: DeviceId) -> &Row {
        &self.totals[device.index()]
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
        let row_events =
            |r: &RowSnapshot| r.reading.alloc_count + r.reading.free_count + r.reading.failed_count;
        Snapshot {
            peak: self.peak_snapshot(),
            current_bytes: self.current_bytes(),
            events: rows.iter().map(row_events).sum::<u64>()
                + transfers.iter().map(|t| t.count).sum::<u64>()
                + self.fills().0
                + unknown_frees,
            unattributed_events: sites
                .iter()
                .filter(|s| of_runtime(s.origin))
                .map(|s| s.alloc_count + s.failed_count)
                .sum::<u64>()
                + transfers.iter().filter(|t| of_runtime(t.origin)).map(|t| t.count).sum::<u64>(),
            unknown_frees,
            missed_frees: self.missed_frees.load(Relaxed),
            live: self.live_blocks(),
            rows,
            sites,
            transfers,
            history_interval_ticks,
            history,
        }
    }

    fn grown(&self, tick: Tick, now: u64) {
        if tick.set_peak {
            self.peak_ticks.fetch_max(now, Relaxed);
        }
        self.regions.record(tick.current);
        self.history.record(now, tick.current);
    }

    fn file(&self, allocation: Allocation) {
        let Allocation { address, bytes, kind, device, site, now, .. } = allocation;
        let block = Block { bytes, site, device, kind, sequence: self.sequence.fetch_add(1, Relaxed) };
        if let Some(stale) = self.blocks.insert(address, block) {
            self.missed_frees.fetch_add(1, Relaxed);
            self.take_out(&stale, now);
        }
    }

    fn take_out(&self, block: &Block, now: u64) {
        self.row(block.device, block.kind).freed(block.bytes);
        if block.kind.on_device() {
            self.totals[block.device.index()].freed(block.bytes);
        }
        let tick = self.clock.sub(block.bytes);
        self.sites.get(block.site).freed(tick, block.bytes);
        self.history.record(now, tick.current);
    }

    fn row_snapshots(&self) -> Vec<RowSnapshot> {
        let mut rows = Vec::new();
        for (index, kinds) in self.rows.iter().enumerate() {
            for kind in Kind::ALL {
                let reading = kinds[kind as usize].reading();
                if reading.alloc_count + reading.failed_count + reading.peak_count > 0 {
                    rows.push(RowSnapshot { device: DeviceId::new(index), kind, reading });
                }
            }
        }
        rows
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
            peak_bytes: counts.peak_bytes,
            live_bytes: live_bytes.max(0) as u64,
            live_count: live_count.max(0) as u64,
            runtime_ticks: site.runtime_ticks(),
        }
    }

    fn transfer_snapshot(&self, transfer: &crate::transfer::Transfer) -> TransferSnapshot {
        let (count, bytes) = transfer.reading();
        TransferSnapshot {
            direction: transfer.direction,
            frames: self.stacks.frames(transfer.stack),
            origin: transfer.stack.as_origin(),
            count,
            bytes,
        }
    }

    fn live_blocks(&self) -> Vec<LiveBlock> {
        let mut blocks: Vec<_> = self
            .blocks
            .to_vec()
            .into_iter()
            .map(|(address, Block { bytes, site, device, kind, sequence })| LiveBlock {
                address,
                bytes,
                kind,
                device,
                site,
                sequence,
            })
            .collect();
        blocks.sort_by_key(|block| block.sequence);
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
