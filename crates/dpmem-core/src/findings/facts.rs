//! What rules judge by.

use super::place::Place;
use super::surroundings::Surroundings;
use crate::kind::DeviceId;
use crate::site::SiteId;
use crate::snapshot::Snapshot;

/// Everything that is known about a run.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The ledger.
    pub snapshot: &'a Snapshot,
    /// Length of a tick.
    pub seconds_per_tick: f64,
    /// Blocks in use at the end, and who holds them. Empty if that was not looked into.
    pub held: &'a [HeldBlock],
    /// Operations whose operands were looked at because their dtypes differed.
    pub promotions: &'a [Promotion],
    /// Names of elementwise functions that a line calls by their own names, as far as they were looked at.
    pub operations: &'a [(Place, String)],
    /// A line of source by file and number, where it can be read.
    pub source: &'a dyn Fn(&str, u32) -> Option<String>,
    /// Devices, variables and the program's end. `None` if that was not looked into.
    pub surroundings: Option<&'a Surroundings>,
    /// Requests that failed, as far as their sizes are known.
    pub failures: &'a [FailedRequest],
    /// How much the devices allow.
    pub rooms: &'a [Room],
}

impl<'a> Facts<'a> {
    /// The ledger alone.
    #[must_use]
    pub fn of(snapshot: &'a Snapshot) -> Self {
        Facts {
            snapshot,
            seconds_per_tick: 1e-9,
            held: &[],
            promotions: &[],
            operations: &[],
            source: &|_, _| None,
            surroundings: None,
            failures: &[],
            rooms: &[],
        }
    }
}

/// Why a block is still in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockState {
    /// Python objects hold it.
    Referenced,
    /// None does; queued work may still use it.
    InFlight,
    /// The pool keeps it for reuse.
    Cached,
    /// It never belonged to a Python object.
    Runtime,
}

/// What kind of thing holds a block: the most telling link of the chain from a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum HolderKind {
    Exception,
    Cache,
    Cycle,
    Generator,
    Closure,
    Default,
    Notebook,
    Thread,
    HostCopy,
    View,
    Container,
    Attribute,
    Local,
    Global,
    Other,
}

/// How a `functools.lru_cache` is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheUse {
    /// Most entries; `None` for an unbounded cache.
    pub max_entries: Option<u64>,
    /// Entries now.
    pub entries: u64,
    /// Calls that were not answered from it.
    pub misses: u64,
}

/// One holder of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderRecord {
    /// Its kind.
    pub kind: HolderKind,
    /// The chain from a root, as people read it.
    pub path: String,
    /// Whether a notebook's own memory of what cells did is what holds it: results, and the last traceback, whose kind
    /// is `Exception`.
    pub notebook: bool,
    /// The container or cache that the path leads through, as people read it; the holders of one have it in common.
    pub owner: Option<String>,
    /// The cache that it is, if it is one that can be asked.
    pub cache: Option<CacheUse>,
}

/// A block in use and who holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBlock {
    /// The site that allocated it.
    pub site: SiteId,
    /// Its device.
    pub device: DeviceId,
    /// Its size.
    pub bytes: u64,
    /// Why it is still in use.
    pub state: BlockState,
    /// How much of it the arrays that sit on it cover in all; `None` if that is not known.
    pub covered_bytes: Option<u64>,
    /// Who holds it.
    pub holders: Vec<HolderRecord>,
}

/// An operand of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Name of its type, such as `numpy.float64`.
    pub type_name: String,
    /// Name of its dtype, such as `float64`; `None` for a Python number.
    pub dtype: Option<String>,
    /// Number of dimensions; `None` for a Python number.
    pub dimensions: Option<u32>,
}

/// An operation that was looked at because it had to cast an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The user's own line.
    pub place: Place,
    /// Name of the function.
    pub operation: String,
    /// Both operands.
    pub operands: [Operand; 2],
}

/// Requests of one line that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRequest {
    /// The user's own line; `None` where no line of Python was running.
    pub place: Option<Place>,
    /// The device.
    pub device: DeviceId,
    /// The largest of them.
    pub bytes: u64,
    /// How many there were.
    pub count: u64,
    /// The limit that stood in the way; `None` if the runtime refused.
    pub limit_bytes: Option<u64>,
    /// The device's largest single allocation.
    pub max_alloc_bytes: Option<u64>,
    /// Who held most when the newest of them failed, and how much, in words; `None` where letting go of it would not help.
    pub held_most: Option<String>,
}

/// How much a device allows, and how much of it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The device.
    pub device: DeviceId,
    /// The most device and shared memory that was in use at a time.
    pub peak_bytes: u64,
    /// The limit on this process; `None` for none.
    pub limit_bytes: Option<u64>,
    /// The device's capacity; `None` if it is unknown.
    pub capacity_bytes: Option<u64>,
}
