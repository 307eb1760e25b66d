//! The report as data: one type per object of the report's JSON, fields in the order of its keys.
//!
//! Owns names, order and nullability of every key. Must not compute anything: whoever fills a report has the numbers.
//! Invariants: bytes and counts are plain integers, times are seconds, and an unknown number is `None`, never 0.

mod devices;
mod findings;
mod sites;

pub use devices::{Device, FreeTrust, Usm, UsmKind};
pub use findings::{Finding, Severity};
use serde::{Deserialize, Serialize};
pub use sites::{Direction, Frame, Holder, HolderKind, Live, LiveState, Peak, PeakSite, Site, Transfer};

/// Everything known about one recorded run. `usm`, `peak`, `sites` and `live` share one instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this layout, [`Report::SCHEMA`].
    pub schema: u32,
    /// Version of dpmem that wrote the report.
    pub dpmem: String,
    /// The program as it was typed: script or `-m module` or `-c code`, then its arguments.
    pub command: Vec<String>,
    /// Version of the Python interpreter.
    pub python: String,
    /// Process that was recorded.
    pub pid: u32,
    /// The program's exit code; minus the signal's number if it died by one; `None` while it still runs.
    pub exit_code: Option<i32>,
    /// When recording started, as an RFC 3339 time in UTC.
    pub started: String,
    /// From the start of recording to the instant of the report, in seconds.
    pub duration_s: f64,
    /// How the record was made and what it lacks.
    pub recording: Recording,
    /// Every device that the runtime shows.
    pub devices: Vec<Device>,
    /// Accounting, one row per device and kind.
    pub usm: Vec<Usm>,
    /// The largest sum over all devices and kinds, and what filled it.
    pub peak: Peak,
    /// Every place that allocated.
    pub sites: Vec<Site>,
    /// Bytes copied between host and devices, by place.
    pub transfers: Vec<Transfer>,
    /// What was still in use at the instant of the report.
    pub live: Vec<Live>,
    /// Bytes in use over time.
    pub history: History,
    /// The caching pool, `None` where none served.
    pub pool: Option<Pool>,
    /// What is wrong with the program's use of memory.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The layout that these types describe.
    pub const SCHEMA: u32 = 1;

    /// The report as JSON on one line, without a line end. A float that is not finite becomes `null`.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Serialisation can only fail on a map whose keys are no strings, or inside a hand-written `Serialize`: there
        // is neither in a report.
        serde_json::to_string(self).expect("a report is plain data with string keys")
    }
}

/// How the record was made and what it lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Whether every USM event of the process since the start of recording is in the report.
    pub complete: bool,
    /// Why the record is incomplete; `None` where it is complete.
    pub reason: Option<String>,
    /// What the events were seen through; `None` where nothing could be hooked.
    pub mechanism: Option<String>,
    /// Events recorded.
    pub events: u64,
    /// Events of the runtime's own threads, which run no Python line.
    pub unattributed_events: u64,
    /// Facts that the user should know, one sentence each.
    pub notes: Vec<String>,
    /// Frees of blocks that nobody saw being allocated; counted, never subtracted.
    pub unknown_frees: u64,
    /// Events that happened but could not be recorded.
    pub failed_events: u64,
}

/// Bytes in use over time, as a bounded series of equal intervals from the start of recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Length of one interval in seconds.
    pub interval_s: f64,
    /// The most bytes in use, over all devices and kinds, within each interval.
    pub current_bytes: Vec<u64>,
}

/// What the caching pool did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// The limit of each device that has one; `None` without one, and where they differ.
    pub limit_bytes: Option<u64>,
    /// Device and shared memory held from the runtime now: what a limit counts.
    pub reserved_bytes: u64,
    /// The part of `reserved_bytes` that no block uses.
    pub cached_bytes: u64,
    /// The most ever held from the runtime.
    pub peak_reserved_bytes: u64,
    /// Allocations served from the cache; these counts are of all kinds of memory.
    pub hits: u64,
    /// Allocations passed on to the runtime.
    pub misses: u64,
    /// Cached blocks given back to make room.
    pub trims: u64,
    /// Allocations that succeeded only after something was done about a shortage.
    pub rescues: u64,
    /// What was done: the same allocations, by what helped.
    pub rescued_by: RescuedBy,
    /// Host memory, which no limit counts.
    #[serde(default)]
    pub host: HostPool,
}

/// Host memory held from the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPool {
    /// Now.
    pub reserved_bytes: u64,
    /// The part that no block uses.
    pub cached_bytes: u64,
    /// At most.
    pub peak_reserved_bytes: u64,
}

/// Allocations that a shortage did not stop, by what helped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescuedBy {
    /// Cached memory was given back.
    pub trim: u64,
    /// Queued work was waited for.
    pub wait: u64,
    /// Python's cyclic collector ran.
    pub collect: u64,
    /// A callback of the program freed something.
    pub callback: u64,
}
