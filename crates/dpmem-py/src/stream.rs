//! The reader thread for Python: where bytes come from, where they go, and what became of it.
//!
//! The thread never meets Python: what keeps memory alive is held in here, by objects that only threads with the GIL
//! drop, and a reader that goes has ended its thread before.

mod memory;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use dpmem_stream::{Block, Error, FileOrigin, Job, OpenFiles, Order, Origin, Reader, Ticket};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use memory::{Lent, Shown};

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StreamOrigin>()?;
    module.add_class::<StreamReader>()?;
    module.add_function(wrap_pyfunction!(stream_file, module)?)?;
    module.add_function(wrap_pyfunction!(stream_memory, module)?)?;
    module.add_function(wrap_pyfunction!(stream_reachable, module)?)?;
    module.add_function(wrap_pyfunction!(stream_fill, module)?)
}

/// Where bytes come from.
#[pyclass(frozen, module = "dpmem._native")]
struct StreamOrigin {
    origin: Arc<dyn Origin>,
    /// What keeps the memory alive that `origin` shows.
    _keeper: Option<Py<PyAny>>,
}

/// A file, by its name, device and inode.
#[pyfunction]
fn stream_file(path: PathBuf, device: u64, inode: u64) -> StreamOrigin {
    StreamOrigin { origin: Arc::new(FileOrigin::new(path, device, inode)), _keeper: None }
}

/// Memory that `keeper` keeps alive.
#[pyfunction]
fn stream_memory(address: usize, nbytes: usize, keeper: Py<PyAny>) -> StreamOrigin {
    StreamOrigin { origin: Arc::new(Shown::new(address, nbytes)), _keeper: Some(keeper) }
}

/// Whether this process can read and write memory there; nothing is changed.
#[pyfunction]
fn stream_reachable(address: usize, nbytes: usize) -> bool {
    memory::is_reachable(address, nbytes)
}

type Place = Option<(usize, Vec<usize>, Vec<usize>)>;
/// As `Block` in `_sources.py`.
type Piece<'py> = (Bound<'py, StreamOrigin>, u64, u64, u64, u64, u64, u64, usize, Place);

/// The blocks, and what keeps their origins alive.
fn blocks_of(pieces: Vec<Piece<'_>>) -> (Vec<Block>, Vec<Py<StreamOrigin>>) {
    let both = pieces.into_iter().map(|piece| {
        let (from, offset, count, stride, bytes, target_offset, target_stride, swapped, order) = piece;
        let origin = from.get().origin.clone();
        let order = order.map(|(item, shape, strides)| Order { item, shape, strides });
        let block =
            Block { origin, offset, count, stride, bytes, target_offset, target_stride, swapped, order };
        (block, from.unbind())
    });
    both.unzip()
}

/// Fills memory on the calling thread, without the GIL. The caller keeps the memory alive, and to itself.
#[pyfunction]
fn stream_fill(py: Python<'_>, address: usize, nbytes: usize, blocks: Vec<Piece<'_>>) -> PyResult<()> {
    let (blocks, _keepers) = blocks_of(blocks);
    let mut lent = Lent::new(address, nbytes);
    py.detach(|| {
        use dpmem_stream::Target;
        dpmem_stream::fill(&blocks, lent.bytes(), &mut OpenFiles::default(), &AtomicBool::new(false))
    })
    .map_err(raised)
}

/// A thread that fills memory. Everything that it is given stays alive until it has ended, or `close`.
#[pyclass(frozen, module = "dpmem._native")]
struct StreamReader {
    reader: RwLock<Reader>,
    keepers: Mutex<HashMap<Ticket, Keepers>>,
}

/// What keeps a job's memory alive: where it is read to, and where from.
type Keepers = (Py<PyAny>, Vec<Py<StreamOrigin>>);

#[pymethods]
impl StreamReader {
    #[new]
    fn new(py: Python<'_>) -> PyResult<StreamReader> {
        let reader = py.detach(Reader::start).map_err(raised)?;
        Ok(StreamReader { reader: RwLock::new(reader), keepers: Mutex::default() })
    }

    /// Has memory filled that `keeper` keeps alive and that nobody else touches meanwhile. The job's number.
    fn submit(
        &self,
        address: usize,
        nbytes: usize,
        keeper: Py<PyAny>,
        blocks: Vec<Piece<'_>>,
    ) -> PyResult<Ticket> {
        let (blocks, origins) = blocks_of(blocks);
        let job = Job { target: Box::new(Lent::new(address, nbytes)), blocks };
        // The keepers are entered before anybody can ask for the job's end, as the GIL is held.
        let ticket = self.reader().submit(job).map_err(raised)?;
        lock(&self.keepers).insert(ticket, (keeper, origins));
        Ok(ticket)
    }

    /// Whether a job has ended.
    fn has_ended(&self, ticket: Ticket) -> PyResult<bool> {
        self.reader().has_ended(ticket).map_err(raised)
    }

    /// Waits for a job, and raises what went wrong. Signals are heard meanwhile.
    fn wait(&self, py: Python<'_>, ticket: Ticket) -> PyResult<()> {
        const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);
        loop {
            // Another thread's `close` waits for as long as this, not longer.
            let end = py.detach(|| self.reader().wait(ticket, BETWEEN_SIGNALS));
            match end {
                None => py.check_signals()?,
                Some(end) => {
                    let keepers = lock(&self.keepers).remove(&ticket);
                    drop(keepers);
                    return end.map_err(raised);
                }
            }
        }
    }

    /// Ends the thread and lets go of everything it was given.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.reader.write().unwrap_or_else(PoisonError::into_inner).close());
        let keepers = std::mem::take(&mut *lock(&self.keepers));
        drop(keepers);
    }
}

impl StreamReader {
    fn reader(&self) -> RwLockReadGuard<'_, Reader> {
        self.reader.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamReader {
    // The thread must have ended before the keepers go, whatever the order of the fields.
    fn drop(&mut self) {
        self.reader.get_mut().unwrap_or_else(PoisonError::into_inner).close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error as Python has it: about a file an `OSError` (of the kind that the system's number says), else what it is.
fn raised(error: Error) -> PyErr {
    let text = format!("failed to {error}");
    match error.system().and_then(std::io::Error::raw_os_error) {
        // `OSError` picks its subclass by the number.
        Some(number) => PyOSError::new_err((number, text)),
        None if error.is_about_file() => PyOSError::new_err(text),
        None if matches!(error, Error::Memory { .. }) => PyMemoryError::new_err(text),
        None if matches!(error, Error::Beyond { .. }) => PyValueError::new_err(text),
        None => PyRuntimeError::new_err(text),
    }
}
