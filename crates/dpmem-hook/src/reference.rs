//! A naive recorder, for tests only: the list of all events, in the order in which the ledger took them.
//!
//! While it is on, one lock makes each event's entry in the ledger and in the list a single step. So a test can replay
//! the list in the simplest way there is and compare; the ledger itself works as it always does.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dpmem_core::{Block, DeviceId, Kind, SiteId};

static ON: AtomicBool = AtomicBool::new(false);
static MARK: AtomicBool = AtomicBool::new(false);
static EVENTS: Mutex<Vec<ReferenceEvent>> = Mutex::new(Vec::new());

/// An event as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceEvent {
    /// An allocation, or the free of a known block.
    pub allocation: bool,
    /// Kind of the block.
    pub kind: Kind,
    /// Device of the block.
    pub device: DeviceId,
    /// Size of the block.
    pub bytes: u64,
    /// Site that allocated it.
    pub site: SiteId,
    /// Its address.
    pub address: usize,
}

/// Starts an empty list.
pub fn reference_start() {
    lock().clear();
    ON.store(true, Relaxed);
}

/// The list so far; `None` if it isn't kept.
pub fn reference_events() -> Option<Vec<ReferenceEvent>> {
    ON.load(Relaxed).then(|| lock().clone())
}

/// For tests: writes a line that marks this moment in the runtime's trace, which goes to one of these two.
pub fn write_mark(moment: &str) {
    let line = format!("<<< dpmem {moment} >>>\n");
    for stream in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: writes bytes of a live string to a descriptor; a closed one answers an error.
        unsafe { libc::write(stream, line.as_ptr().cast(), line.len()) };
    }
}

/// Makes the moment at which the shims come in be marked, too.
pub fn mark_begin() {
    MARK.store(true, Relaxed);
}

/// The shims are in.
pub(crate) fn began() {
    if MARK.load(Relaxed) {
        write_mark("begin");
    }
}

/// Holds off other events, if the list is kept.
pub(crate) fn order() -> Option<MutexGuard<'static, Vec<ReferenceEvent>>> {
    ON.load(Relaxed).then(lock)
}

pub(crate) fn freed(list: &mut Option<MutexGuard<'_, Vec<ReferenceEvent>>>, address: usize, block: &Block) {
    if let Some(list) = list {
        let Block { bytes, site, device, kind, .. } = *block;
        list.push(ReferenceEvent { allocation: false, kind, device, bytes, site, address });
    }
}

fn lock() -> MutexGuard<'static, Vec<ReferenceEvent>> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}
