//! Sites and everything that refers to them: the peak, copies and what is still in use.
//!
//! Owns these rows of the report, computes nothing. Invariant: a site is one kind, device and stack, and `id` names it
//! within its report only.

use serde::{Deserialize, Serialize};

use super::UsmKind;

/// One Python frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Absolute path, or a name such as `<string>` where there is no file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Name of the function, `<module>` at the top level.
    pub function: String,
    /// Whether it belongs to a library: dpnp, dpctl, the standard library, site-packages or dpmem.
    pub library: bool,
}

/// One place that allocated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Names the site within this report.
    pub id: u64,
    /// Kind of memory.
    pub kind: UsmKind,
    /// Filter string; `None` where the memory belongs to no single device.
    pub device: Option<String>,
    /// Frames, innermost first; empty where there is no Python line.
    pub stack: Vec<Frame>,
    /// Allocations made.
    pub alloc_count: u64,
    /// Sum of these allocations.
    pub allocated_bytes: u64,
    /// The most that this site had in use, whenever that was.
    pub peak_bytes: u64,
    /// In use at the instant of the report.
    pub live_bytes: u64,
    /// Blocks in use at the instant of the report.
    pub live_count: u64,
    /// Time inside the runtime's own allocate and free calls, in seconds.
    pub runtime_s: f64,
    /// What an empty stack means, such as `before start` or `runtime thread`; `None` for an ordinary site.
    pub label: Option<String>,
}

/// The largest sum over all devices and kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Bytes in use.
    pub bytes: u64,
    /// Seconds since the start of recording; `None` where nothing was ever in use.
    pub at_s: Option<f64>,
    /// What filled it.
    pub sites: Vec<PeakSite>,
}

/// One site's part of the peak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeakSite {
    /// [`Site::id`].
    pub site: u64,
    /// Bytes it had in use.
    pub bytes: u64,
    /// Blocks it had in use.
    pub count: u64,
}

/// Bytes copied in one direction at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// From where to where.
    pub direction: Direction,
    /// Frames, innermost first.
    pub stack: Vec<Frame>,
    /// Copies made.
    pub count: u64,
    /// Sum of their bytes.
    pub bytes: u64,
}

/// From where to where bytes were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Upload.
    HostToDevice,
    /// Download.
    DeviceToHost,
    /// Within one device or between two.
    DeviceToDevice,
}

/// What one site still had in use in one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// [`Site::id`].
    pub site: u64,
    /// Bytes in use.
    pub bytes: u64,
    /// Blocks in use.
    pub count: u64,
    /// Why it is still in use.
    pub state: LiveState,
    /// Who keeps it, those that keep most first; empty where nobody was found or asked.
    pub holders: Vec<Holder>,
    /// Holders that were found and are not listed.
    #[serde(default)]
    pub more_holders: u64,
}

/// Why memory is still in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveState {
    /// A Python object refers to it.
    Referenced,
    /// Queued work still uses it.
    InFlight,
    /// The pool keeps it for reuse.
    Cached,
    /// The runtime itself keeps it.
    Runtime,
}

/// One reason why Python keeps a block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// The most telling link of the chain.
    pub kind: HolderKind,
    /// The chain from a root that a person would name, such as `__main__.kept[2]`.
    pub path: String,
    /// Bytes kept through it.
    pub bytes: u64,
}

/// The most telling link of a chain of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    /// A name in a module.
    Global,
    /// A name in a running function.
    Local,
    /// An attribute of an object.
    Attribute,
    /// An element of a list, dict, set or tuple.
    Container,
    /// A variable that a function closes over.
    Closure,
    /// A default argument.
    Default,
    /// A cache such as `lru_cache`.
    Cache,
    /// A stored exception or its traceback.
    Exception,
    /// Nothing but a reference cycle.
    Cycle,
    /// A suspended generator or coroutine.
    Generator,
    /// Something that belongs to a thread.
    Thread,
    /// A notebook's history of inputs and outputs.
    Notebook,
    /// A view of a larger block.
    View,
    /// A NumPy array on a USM-host block.
    HostCopy,
    /// Anything else.
    Other,
}
