//! What Python hands to the walk: types and descriptors by name, where the roots are, samples to learn layouts from.

use std::collections::{HashMap, HashSet};

use pyo3::prelude::*;

/// Built-in types and the descriptors that read them without asking a class of the program.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Vocabulary<'py> {
    pub(super) function: Bound<'py, PyAny>,
    pub(super) generators: Vec<Bound<'py, PyAny>>,
    pub(super) frame: Bound<'py, PyAny>,
    pub(super) traceback: Bound<'py, PyAny>,
    pub(super) cell: Bound<'py, PyAny>,
    pub(super) exception: Bound<'py, PyAny>,
    pub(super) buffers: Vec<Bound<'py, PyAny>>,
    pub(super) deque: Option<Bound<'py, PyAny>>,
    pub(super) lru_cache: Option<Bound<'py, PyAny>>,
    pub(super) thread_local: Option<Bound<'py, PyAny>>,
    /// `dpnp.ndarray`, `usm_ndarray` and the base class of dpctl's memory objects.
    pub(super) dpnp: Vec<Bound<'py, PyAny>>,
    pub(super) usm: Vec<Bound<'py, PyAny>>,
    pub(super) memory: Option<Bound<'py, PyAny>>,
    pub(super) ndarray: Option<Bound<'py, PyAny>>,
    /// The type of the descriptors that `__slots__` makes.
    pub(super) member: Bound<'py, PyAny>,
    pub(super) type_mro: Bound<'py, PyAny>,
    pub(super) type_dict: Bound<'py, PyAny>,
    pub(super) type_name: Bound<'py, PyAny>,
    pub(super) type_module: Bound<'py, PyAny>,
    pub(super) memory_pointer: Option<Bound<'py, PyAny>>,
    pub(super) memory_bytes: Option<Bound<'py, PyAny>>,
    pub(super) usm_pointer: Option<Bound<'py, PyAny>>,
    pub(super) usm_bytes: Option<Bound<'py, PyAny>>,
    pub(super) ndarray_base: Option<Bound<'py, PyAny>>,
    pub(super) ndarray_bytes: Option<Bound<'py, PyAny>>,
    pub(super) ndarray_flat: Option<Bound<'py, PyAny>>,
    pub(super) ndarray_dtype: Option<Bound<'py, PyAny>>,
    pub(super) object_dtype: Option<Bound<'py, PyAny>>,
}

/// Where a search begins and ends.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Request<'py> {
    pub(super) vocabulary: Vocabulary<'py>,
    pub(super) samples: Samples<'py>,
    /// `sys.modules`.
    pub(super) modules: Bound<'py, PyAny>,
    /// Threads by their number (`threading._active`).
    pub(super) threads: Option<Bound<'py, PyAny>>,
    /// `sys._current_frames` and `gc.get_objects`.
    pub(super) current_frames: Bound<'py, PyAny>,
    pub(super) universe: Bound<'py, PyAny>,
    /// The number of the main thread.
    pub(super) main_thread: u64,
    /// Folders whose files are no user code, and our own.
    pub(super) libraries: Vec<String>,
    pub(super) own_folder: String,
    /// What a notebook calls its cells, by file.
    pub(super) cells: HashMap<String, String>,
    /// Blocks to find the holders of: address and bytes.
    pub(super) blocks: Vec<(usize, u64)>,
    /// Those of the blocks whose device has work queued that keeps its arguments alive.
    pub(super) pending: HashSet<usize>,
    /// An array that the caller itself holds, or 0.
    pub(super) asked: usize,
    pub(super) seconds: f64,
}

/// Objects whose insides are known, so that the places of their fields can be found.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Samples<'py> {
    /// A function with a positional default, a keyword default and a closure.
    pub(super) function: Bound<'py, PyAny>,
    pub(super) code: Bound<'py, PyAny>,
    pub(super) defaults: Bound<'py, PyAny>,
    pub(super) keyword_defaults: Bound<'py, PyAny>,
    pub(super) closure: Bound<'py, PyAny>,
    /// A suspended generator with `locals` as its variables, and its frame object. (A frame that has ended would
    /// mislead: it has moved its variables into the object.)
    pub(super) frame: Bound<'py, PyAny>,
    pub(super) generator: Bound<'py, PyAny>,
    pub(super) generator_code: Bound<'py, PyAny>,
    pub(super) locals: Vec<Bound<'py, PyAny>>,
}
