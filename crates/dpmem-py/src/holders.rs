//! Who holds a block: the walk from Python's roots to the arrays on it.
//!
//! One search looks at everything at one moment. It begins with what an audit hook of the program may hear of
//! (`gc.get_objects`, `sys._current_frames`), and from then on nothing of the program runs until it ends: the GIL is
//! held, the collector is off, no attribute of a class is asked. What it finds is plain data; no reference outlives it.
//!
//! `roots` says where chains begin, `graph` walks, `arrays` says which object stands for which block, `links` names
//! single steps and `chains` puts them into words. `object` and `layout` are all that knows the interpreter's insides.

mod arrays;
mod chains;
mod code;
mod facts;
mod graph;
mod layout;
mod links;
mod object;
mod roots;
mod search;
mod types;

use dpmem_core::findings::HolderKind as Kind;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Registers this module's classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Held>()?;
    module.add_function(wrap_pyfunction!(holders_find, module)?)
}

/// Why a block is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// A Python object holds it, a cycle included.
    Referenced,
    /// No Python object holds it but for arguments of queued work.
    InFlight,
    /// It never belonged to a Python object, or no longer does, and nothing is queued.
    Runtime,
}

/// What `functools.lru_cache` says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheFacts {
    /// `None`: without a bound.
    pub(crate) maxsize: Option<u64>,
    pub(crate) currsize: u64,
    pub(crate) misses: u64,
}

/// One way in which a block is held.
#[derive(Clone, Debug)]
pub(crate) struct HolderFacts {
    pub(crate) kind: Kind,
    /// The whole chain, see `chains`.
    pub(crate) path: String,
    /// Its first name: `__main__.kept`.
    pub(crate) root: String,
    /// The first container or cache that it leads through, and how much that holds.
    pub(crate) owner: Option<String>,
    pub(crate) owner_len: Option<u64>,
    /// Whether that is a `deque`, which may have a bound of its own.
    pub(crate) owner_is_queue: bool,
    pub(crate) cache: Option<CacheFacts>,
    /// Whether it is a NumPy array that is held.
    pub(crate) numpy: bool,
    /// Whether the array that is held covers less than the block.
    pub(crate) view: bool,
    /// Whether nothing but a cycle holds it, whatever its kind.
    pub(crate) unreachable: bool,
    /// Whether it is the notebook that holds it, whatever its kind: the last traceback is an exception.
    pub(crate) notebook: bool,
    /// Whether the chain begins with what no Python object accounts for.
    pub(crate) outside: bool,
}

/// A block and what the search found out about it.
#[derive(Clone, Debug)]
pub(crate) struct HeldBlock {
    pub(crate) address: usize,
    pub(crate) state: State,
    /// Bytes that the arrays on it cover together, at most all.
    pub(crate) covered_bytes: u64,
    /// The most telling first.
    pub(crate) holders: Vec<HolderFacts>,
    /// Holders that were found and are not listed.
    pub(crate) more_holders: usize,
}

/// What a search found, for the blocks it was asked about, in their order.
#[pyclass(module = "dpmem._native", frozen)]
pub(crate) struct Held {
    pub(crate) blocks: Vec<HeldBlock>,
    /// Whether everything was looked at in time.
    #[pyo3(get)]
    pub(crate) complete: bool,
    /// Objects looked at.
    #[pyo3(get)]
    pub(crate) objects: usize,
}

/// A holder as Python sees it: kind, path, view, NumPy.
type Row = (&'static str, String, bool, bool);

#[pymethods]
impl Held {
    /// (address, state, bytes that arrays cover, holders, holders not listed) for each block.
    fn rows(&self) -> Vec<(usize, &'static str, u64, Vec<Row>, usize)> {
        let holder = |h: &HolderFacts| (name(h.kind), h.path.clone(), h.view, h.numpy);
        let row = |b: &HeldBlock| {
            let holders = b.holders.iter().map(holder).collect();
            (b.address, b.state.name(), b.covered_bytes, holders, b.more_holders)
        };
        self.blocks.iter().map(row).collect()
    }

    /// All that is known of each holder of a block, in the order of `rows`.
    fn details<'py>(&self, py: Python<'py>, address: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let block = self.blocks.iter().find(|block| block.address == address);
        block.iter().flat_map(|block| &block.holders).map(|holder| detail(py, holder)).collect()
    }
}

fn detail<'py>(py: Python<'py>, holder: &HolderFacts) -> PyResult<Bound<'py, PyDict>> {
    let detail = PyDict::new(py);
    detail.set_item("kind", name(holder.kind))?;
    detail.set_item("path", &holder.path)?;
    detail.set_item("root", &holder.root)?;
    detail.set_item("owner", &holder.owner)?;
    detail.set_item("owner_len", holder.owner_len)?;
    detail.set_item("cache", holder.cache.map(|cache| (cache.maxsize, cache.currsize, cache.misses)))?;
    detail.set_item("numpy", holder.numpy)?;
    detail.set_item("view", holder.view)?;
    detail.set_item("unreachable", holder.unreachable)?;
    detail.set_item("notebook", holder.notebook)?;
    detail.set_item("outside", holder.outside)?;
    Ok(detail)
}

/// As it is written everywhere.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Exception => "exception",
        Kind::Cache => "cache",
        Kind::Cycle => "cycle",
        Kind::Generator => "generator",
        Kind::Closure => "closure",
        Kind::Default => "default",
        Kind::Notebook => "notebook",
        Kind::Thread => "thread",
        Kind::HostCopy => "host_copy",
        Kind::View => "view",
        Kind::Container => "container",
        Kind::Attribute => "attribute",
        Kind::Local => "local",
        Kind::Global => "global",
        Kind::Other => "other",
    }
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Referenced => "referenced",
            State::InFlight => "in_flight",
            State::Runtime => "runtime",
        }
    }
}

/// Finds who holds each of the blocks that `request` names.
#[pyfunction]
fn holders_find<'py>(request: &Bound<'py, PyAny>) -> PyResult<Held> {
    search::find(request)
}
