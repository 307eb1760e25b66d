//! What a ledger says at one moment, as plain data for reports.

use std::sync::Arc;

use crate::history::HistorySample;
use crate::kind::{DeviceId, Direction, Kind};
use crate::pattern::{GrowthSample, Pattern};
use crate::rows::InUse;
use crate::site::{SiteCounts, SiteId};
use crate::stack::{Frame, Origin};
use crate::transfer::TransferCounts;

/// What has been done on one device, in one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of all allocations.
    pub allocated_bytes: u64,
    /// Number of allocations.
    pub alloc_count: u64,
    /// Bytes of all frees of known blocks.
    pub freed_bytes: u64,
    /// Number of frees of known blocks.
    pub free_count: u64,
    /// Allocations that were refused, by the runtime or a limit.
    pub failed_count: u64,
    /// Those of them that were refused for lack of memory.
    pub out_of_memory_count: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, counts: &SiteCounts) {
        self.allocated_bytes += counts.allocated_bytes;
        self.alloc_count += counts.alloc_count;
        self.freed_bytes += counts.freed_bytes;
        self.free_count += counts.free_count;
        self.failed_count += counts.failed_count;
        self.out_of_memory_count += counts.out_of_memory_count;
    }
}

/// One device and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSnapshot {
    /// The device.
    pub device: DeviceId,
    /// The kind.
    pub kind: Kind,
    /// What is in use and was at most.
    pub in_use: InUse,
    /// What has been done.
    pub totals: Totals,
}

/// One site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSnapshot {
    /// Its number.
    pub id: SiteId,
    /// Kind of its blocks.
    pub kind: Kind,
    /// Device of its blocks.
    pub device: DeviceId,
    /// Its stack, innermost frame first; empty if there is none.
    pub frames: Arc<[Frame]>,
    /// Why there is no stack, if there is none.
    pub origin: Option<Origin>,
    /// Number of allocations.
    pub alloc_count: u64,
    /// Bytes of all allocations.
    pub allocated_bytes: u64,
    /// Number of frees.
    pub free_count: u64,
    /// Allocations that were refused, by the runtime or a limit.
    pub failed_count: u64,
    /// Those of them that were refused for lack of memory.
    pub out_of_memory_count: u64,
    /// The most bytes it ever held.
    pub peak_bytes: u64,
    /// Bytes it holds.
    pub live_bytes: u64,
    /// Blocks it holds.
    pub live_count: u64,
    /// Ticks spent in the runtime's own allocate and free calls for its blocks.
    pub runtime_ticks: u64,
    /// How its blocks came and went.
    pub pattern: Pattern,
    /// What it held over time; empty for a site of few blocks.
    pub growth: Vec<GrowthSample>,
    /// Where in its code the user's own frame stood.
    pub user_instruction: Option<u32>,
}

/// The largest sum over all devices and kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakSnapshot {
    /// Its bytes.
    pub bytes: u64,
    /// When it was reached, in ticks since the ledger's origin.
    pub at_ticks: u64,
    /// What filled it: site, bytes, blocks. `None` if other threads kept setting new peaks while this was read.
    pub sites: Option<Vec<(SiteId, u64, u64)>>,
}

/// Copies of one direction at one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferSnapshot {
    /// The direction.
    pub direction: Direction,
    /// The stack, innermost frame first; empty if there is none.
    pub frames: Arc<[Frame]>,
    /// Why there is no stack, if there is none.
    pub origin: Option<Origin>,
    /// How often, how much and when.
    pub counts: TransferCounts,
    /// Where in its code the user's own frame stood.
    pub user_instruction: Option<u32>,
}

/// Kernel launches at one stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchSnapshot {
    /// The stack, innermost frame first; empty if there is none.
    pub frames: Arc<[Frame]>,
    /// About how many.
    pub count: u64,
    /// When the first of them was made, in ticks.
    pub first_ticks: u64,
    /// When the last of them was made, in ticks.
    pub last_ticks: u64,
}

/// A block in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    /// Where it starts.
    pub address: usize,
    /// Its size as it was asked for.
    pub bytes: u64,
    /// Its kind.
    pub kind: Kind,
    /// Its device.
    pub device: DeviceId,
    /// The site that allocated it.
    pub site: SiteId,
    /// When it was allocated, in ticks.
    pub since: u64,
}

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Rows with at least one event.
    pub rows: Vec<RowSnapshot>,
    /// The peak and what filled it.
    pub peak: PeakSnapshot,
    /// Bytes in use over all devices and kinds.
    pub current_bytes: u64,
    /// Sites, in the order they were first seen.
    pub sites: Vec<SiteSnapshot>,
    /// Copies.
    pub transfers: Vec<TransferSnapshot>,
    /// Kernel launches, where the runtime's launches are seen.
    pub launches: Vec<LaunchSnapshot>,
    /// Blocks in use.
    pub live: Vec<LiveBlock>,
    /// Ticks in one interval of `history`.
    pub history_interval_ticks: u64,
    /// Bytes in use over time.
    pub history: Vec<HistorySample>,
    /// Events recorded: allocations, refused ones, frees, copies.
    pub events: u64,
    /// Allocations and copies of threads that run no Python.
    pub unattributed_events: u64,
    /// Frees of blocks the ledger didn't know.
    pub unknown_frees: u64,
    /// Blocks whose free was never seen: their address was handed out again.
    pub missed_frees: u64,
}
