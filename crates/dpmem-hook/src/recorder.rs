//! Enters what the shims see in the ledger of the current recording.
//!
//! A recording is replaced as a whole. Each thread keeps the one it used last, and looks whether it is still the one.

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::{ArcSwapOption, Cache};
use dpmem_core::{
    Allocation, Block, DeviceId, Direction, Frame, FreedBy, Kind, Ledger, LibraryPaths, Origin, RawFrame,
    SiteCache, TransferId,
};

use crate::abi::{self, Handle, Pointer, SUCCESS, UrResult};
use crate::clock::{Clock, ticks};
use crate::error::Error;
use crate::fetch::{self, Fetch};
use crate::foreign::Foreign;
use crate::{devices, fault, frames, install, pool, published, reference, witness};

/// The first interval of the history is 2^20 ticks: well below a millisecond.
const HISTORY_SHIFT: u32 = 20;

/// Smaller copies are scalars and the library's own parameters, whose content says nothing.
const COMPARED_FROM: u64 = 33;

/// One recording: a ledger and when it began.
pub struct Recording {
    /// What has been recorded.
    pub ledger: Ledger,
    /// When it began.
    pub clock: Clock,
    /// Whether the program had used USM before.
    pub late: bool,
}

/// What a call that allocates was asked for.
pub(crate) struct Asked {
    pub(crate) kind: Kind,
    pub(crate) device: DeviceId,
    pub(crate) bytes: usize,
}

/// What came of a call of the runtime's own, and when it began and ended. Began as much later as waits of ours took.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) result: UrResult,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Call {
    fn ticks(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// A free that has been taken out of a ledger and is being forwarded.
pub(crate) struct Freeing {
    ledger: u64,
    address: usize,
    block: Block,
    /// Bytes in use without it.
    left: u64,
}

/// The recording that shims enter events in.
static ACTIVE: ArcSwapOption<Recording> = ArcSwapOption::const_empty();
/// The newest recording, also after it ended.
static NEWEST: ArcSwapOption<Recording> = ArcSwapOption::const_empty();
/// Whether shims do more than forward.
static ON: AtomicBool = AtomicBool::new(false);
static STACK_DEPTH: AtomicUsize = AtomicUsize::new(0);
static LIBRARIES: RwLock<Option<LibraryPaths>> = RwLock::new(None);

/// What a thread keeps so that most events cost it no lock and no shared counter.
struct Thread {
    active: Cache<&'static ArcSwapOption<Recording>, Option<Arc<Recording>>>,
    sites: SiteCache,
}

thread_local! {
    static THREAD: RefCell<Thread> = RefCell::new(Thread { active: Cache::new(&ACTIVE), sites: SiteCache::new() });
}

/// Begins a new recording.
pub(crate) fn begin(late: bool) {
    devices::forget_all();
    pool::recording_begins();
    let clock = Clock::start();
    let ledger = Ledger::with_rows(published::rows(), clock.origin(), HISTORY_SHIFT);
    let recording = Arc::new(Recording { ledger, clock, late });
    NEWEST.store(Some(recording.clone()));
    ACTIVE.store(Some(recording));
    ON.store(true, Ordering::Release);
}

/// Ends the recording; what it holds can still be read.
pub(crate) fn end() {
    switch_off();
    ACTIVE.store(None);
    pool::recording_ends();
    if let Some(map) = published::map() {
        map.retire();
    }
}

/// Turns every shim into plain forwarding. Safe in a forked child: it only stores to an atomic.
pub(crate) fn switch_off() {
    ON.store(false, Ordering::Release);
}

/// Something of ours failed: recording stops here, the program goes on.
pub(crate) fn give_up() {
    switch_off();
}

/// Whether events are being entered.
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The newest recording, running or ended. `None` before the first, and in a forked child.
pub fn recording() -> Option<Arc<Recording>> {
    if crate::fork::is_child() { None } else { NEWEST.load_full() }
}

/// How many Python frames are kept of each stack, up to [`frames::MAX_DEPTH`]; 0 for none.
pub fn set_stack_depth(depth: usize) {
    STACK_DEPTH.store(depth.min(frames::MAX_DEPTH), Ordering::Relaxed);
}

/// Which folders hold libraries; applies to stacks seen from now on.
pub fn set_libraries(paths: LibraryPaths) {
    *LIBRARIES.write().unwrap_or_else(PoisonError::into_inner) = Some(paths);
}

/// Enters a block that existed before recording started. Nothing if no recording runs.
///
/// # Errors
/// In a forked child, where nothing is recorded.
pub fn adopt(address: usize, bytes: u64, kind: Kind, device: DeviceId) -> Result<(), Error> {
    let recording = recording().ok_or(Error::Forked)?;
    let ledger = &recording.ledger;
    let mut cache = SiteCache::new();
    let site = ledger.site(&mut cache, &[], Origin::BeforeStart, (kind, device), frames::resolve_none);
    ledger.adopt(Allocation { address, bytes, kind, device, site, now: ticks(), runtime_ticks: 0 });
    Ok(())
}

/// Runs our own part of a shim, if a recording runs; `None` if none does or it failed.
///
/// A shim does so before it forwards a call and again after it, and holds on to nothing in between: a recording that is
/// replaced meanwhile gets what is found out after the call.
#[inline]
pub(crate) fn enter<T>(work: impl FnOnce(&Recording, &mut SiteCache) -> T) -> Option<T> {
    if !is_on() {
        return None;
    }
    let mut work = Some(work);
    let entered = THREAD.try_with(|thread| {
        let Ok(mut thread) = thread.try_borrow_mut() else {
            fault::missed();
            return None;
        };
        let Thread { active, sites } = &mut *thread;
        let recording = active.load().as_deref()?;
        let work = work.take()?;
        fault::caught(|| work(recording, sites))
    });
    entered.unwrap_or_else(|_| {
        // The thread is about to end and has given up its own state; what it frees counts all the same.
        let active = ACTIVE.load();
        let (recording, work) = (active.as_deref()?, work.take()?);
        fault::caught(|| work(recording, &mut SiteCache::new()))
    })
}

/// Whether this thread is inside [`enter`].
pub(crate) fn is_entered() -> bool {
    THREAD.try_with(|thread| thread.try_borrow_mut().is_err()).unwrap_or(false)
}

/// A pointer that an allocating call writes its result to.
pub(crate) type Out = *mut Pointer;

impl Recording {
    /// A call that allocates has returned.
    pub(crate) fn allocated(&self, sites: &mut SiteCache, asked: Asked, out: Out, call: Call) {
        let Asked { kind, device, bytes } = asked;
        let new = Cell::new(false);
        let resolve = |raw: &RawFrame| {
            new.set(true);
            resolve(raw)
        };
        let site = with_stack(|raw, without| self.ledger.site(sites, raw, without, (kind, device), resolve));
        if new.get() {
            witness::seen(&self.ledger.frames(site));
        }
        if call.result != SUCCESS {
            self.ledger.failed(site, abi::is_shortage(call.result) && bytes > 0);
            return;
        }
        // SAFETY: the call succeeded, so it has written the block's address to the place its caller gave it.
        let address = unsafe { out.as_ref() }.map_or(0, |&block| block as usize);
        if address == 0 {
            return;
        }
        install::saw_allocation();
        let bytes = bytes as u64;
        let allocation =
            Allocation { address, bytes, kind, device, site, now: call.end, runtime_ticks: call.ticks() };
        let mut list = reference::order();
        self.ledger.allocated(allocation);
        if let Some(list) = &mut list {
            list.push(reference::ReferenceEvent { allocation: true, kind, device, bytes, site, address });
        }
    }

    /// A free is about to be forwarded.
    pub(crate) fn freeing(&self, pointer: Pointer) -> Option<Freeing> {
        let address = pointer as usize;
        if address == 0 {
            return None;
        }
        let mut list = reference::order();
        let (block, left) = self.ledger.freeing(address, freed_by)?;
        reference::freed(&mut list, address, &block);
        Some(Freeing { ledger: self.ledger.id(), address, block, left })
    }

    /// The free has returned.
    pub(crate) fn freed(&self, freeing: &Freeing, call: Call) {
        if freeing.ledger != self.ledger.id() {
            return;
        }
        if call.result == SUCCESS {
            self.ledger.freed(&freeing.block, freeing.left, call.end, call.ticks());
        } else {
            self.ledger.free_refused(freeing.address, freeing.block);
        }
    }

    /// A copy between two addresses was accepted. Blocks from before the recording may be unknown to the ledger; only
    /// then is the runtime asked about an address.
    pub(crate) fn copied(
        &self,
        queue: Handle,
        target: Pointer,
        source: Pointer,
        bytes: u64,
        event: Option<Handle>,
    ) {
        let kind = |pointer: Pointer| {
            let known = self.ledger.blocks().find(pointer as usize).map(|(_, block)| block.kind);
            known.or_else(|| if self.late { devices::kind_of(pointer, queue) } else { None })
        };
        let Some(direction) = Direction::of(kind(source), kind(target)) else { return };
        if direction == Direction::HostToDevice {
            self.sent(source, bytes);
            return;
        }
        let transfer = self.transferred(direction, bytes);
        if direction == Direction::DeviceToHost
            && bytes >= COMPARED_FROM
            && let Some(event) = event
        {
            let (ledger, event, address) = (self.ledger.id(), event as usize, target as usize);
            fetch::began(Fetch { ledger, event, transfer, address, bytes });
        }
    }

    /// A copy of known direction was accepted.
    pub(crate) fn transferred(&self, direction: Direction, bytes: u64) -> TransferId {
        with_stack(|raw, without| {
            let transfer = self.ledger.transfer(raw, without, direction, resolve);
            self.ledger.transferred(transfer, bytes, ticks());
            transfer
        })
    }

    /// A copy from host memory was accepted, whose source must stay as it is until the copy is done.
    pub(crate) fn sent(&self, source: Pointer, bytes: u64) {
        let transfer = self.transferred(Direction::HostToDevice, bytes);
        self.ledger.came_from(transfer, source as usize);
        if bytes >= COMPARED_FROM && !source.is_null() {
            self.ledger.compare_content(transfer, &Foreign { address: source as usize, len: bytes as usize });
        }
    }

    /// A copy to host memory has ended, and its thread is still inside the call that waited for it.
    pub(crate) fn fetched(&self, fetch: &Fetch) {
        if fetch.ledger == self.ledger.id() {
            let data = Foreign { address: fetch.address, len: fetch.bytes as usize };
            self.ledger.compare_content(fetch.transfer, &data);
        }
    }

    /// The device was given a kernel to run; `count` launches are entered for it.
    pub(crate) fn launched(&self, count: u64) {
        with_stack(|raw, without| self.ledger.launched(raw, without, (count, ticks()), resolve));
    }

    /// A fill was accepted.
    pub(crate) fn filled(&self, bytes: u64) {
        self.ledger.filled(bytes);
    }
}

/// Which kind of thread frees a block; `user` is the user's frame as it was when the block was allocated.
fn freed_by(user: Option<RawFrame>) -> FreedBy {
    if !frames::runs_python() {
        return FreedBy::Runtime;
    }
    match user {
        Some(user) if frames::is_in_line_of(&user) => FreedBy::SameLine,
        _ => FreedBy::Program,
    }
}

/// Calls `use_stack` with this thread's Python frames, innermost first, or with none and the reason.
fn with_stack<T>(use_stack: impl FnOnce(&[RawFrame], Origin) -> T) -> T {
    let depth = STACK_DEPTH.load(Ordering::Relaxed);
    if depth == 0 || !frames::are_readable() {
        return use_stack(&[], Origin::NotRecorded);
    }
    let mut buffer = [const { MaybeUninit::uninit() }; frames::MAX_DEPTH];
    use_stack(frames::capture(&mut buffer[..depth]), Origin::RuntimeThread)
}

/// Turns a captured frame into strings, marked as a library's or the user's.
pub(crate) fn resolve(raw: &RawFrame) -> Frame {
    let libraries = LIBRARIES.read().unwrap_or_else(PoisonError::into_inner);
    frames::resolve(raw, libraries.as_ref())
}

/// The device of a context, a queue, or itself.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Device(crate::abi::Handle),
    Context(crate::abi::Handle),
    Queue(crate::abi::Handle),
}

impl Place {
    pub(crate) fn device(self) -> DeviceId {
        match self {
            Place::Device(handle) => devices::devices().number(handle),
            Place::Context(handle) => devices::of_context(handle),
            Place::Queue(handle) => devices::of_queue(handle),
        }
    }
}
