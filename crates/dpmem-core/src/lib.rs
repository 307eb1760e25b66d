//! The vocabulary and the ledger of dpmem.
//!
//! Everything here is pure: no C, no Python, no clock, no I/O. Callers pass times as opaque *ticks* and stacks as
//! opaque [`RawFrame`]s together with a function that resolves a frame the first time it is seen.
//!
//! Limits, stated first: at most [`MAX_DEVICES`] devices and [`MAX_SITES`] sites are told apart; what comes beyond is
//! counted in full but shares one site for each device and kind (`other stacks`). Memory grows with sites and live blocks, never with events.
//!
//! [`pool`] decides what is asked of the runtime in the first place, if a pool or a limit is on.
//!
//! The walk of one allocation: [`Ledger::site`] interns its stack, [`Ledger::allocated`] adds it to its row, to the
//! [`PeakClock`], to its site and to the [`BlockMap`]; [`Ledger::freeing`] takes it out again.

mod append;
mod blocks;
pub mod bytes;
mod content;
pub mod findings;
mod history;
mod kind;
mod launch;
mod ledger;
mod library;
mod pattern;
mod peak;
pub mod pool;
mod region;
mod rows;
mod site;
mod size;
mod snapshot;
mod stack;
mod sync;
mod transfer;
#[cfg(not(loom))]
mod usage;

pub use blocks::{Block, BlockMap};
pub use content::Data;
pub use history::{History, HistorySample};
pub use kind::{DeviceId, Direction, Kind, MAX_DEVICES};
pub use ledger::{Allocation, Ledger};
pub use library::LibraryPaths;
pub use pattern::{GrowthSample, Pattern};
pub use peak::{PeakClock, PeakReading, Tick};
pub use region::{Region, RegionTable};
pub use rows::{Amount, DeviceRows, InUse, Rows};
pub use site::{Composition, FreedBy, MAX_SITES, SiteCache, SiteId, SiteKey};
pub use size::Size;
pub use snapshot::{
    LaunchSnapshot, LiveBlock, PeakSnapshot, RowSnapshot, SiteSnapshot, Snapshot, Totals, TransferSnapshot,
};
pub use stack::{Frame, Origin, RawFrame, Stack, StackId};
pub use transfer::{TransferCounts, TransferId};
#[cfg(not(loom))]
pub use usage::{DeviceReserve, DeviceUsage, LentRows, Usage, UsageMap};
