//! Enters what the shims see in the ledger of the current recording.
//!
//! A recording is replaced as a whole: a shim that is under way when recording starts or stops finishes with the one it
//! began with.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::{ArcSwapOption, Guard};
use dpmem_core::{
    Allocation, Block, DeviceId, Direction, Frame, Kind, Ledger, LibraryPaths, Origin, RawFrame, SiteCache,
    SiteId,
};

use crate::abi::{Handle, Pointer, SUCCESS, UrResult};
use crate::clock::{Clock, ticks};
use crate::error::Error;
use crate::{devices, fault, frames, install, reference};

/// The first interval of the history is 2^20 ticks: well below a millisecond.
const HISTORY_SHIFT: u32 = 20;

/// One recording: a ledger and when it began.
pub struct Recording {
    /// What has been recorded.
    pub ledger: Ledger,
    /// When it began.
    pub clock: Clock,
    /// Whether the program had used USM before.
    pub late: bool,
}

/// The recording that shims enter events in.
static ACTIVE: ArcSwapOption<Recording> = ArcSwapOption::const_empty();
/// The newest recording, also after it ended.
static NEWEST: ArcSwapOption<Recording> = ArcSwapOption::const_empty();
/// Whether shims do more than forward.
static ON: AtomicBool = AtomicBool::new(false);
static STACK_DEPTH: AtomicUsize = AtomicUsize::new(0);
static LIBRARIES: RwLock<Option<LibraryPaths>> = RwLock::new(None);

thread_local! {
    static SITES: RefCell<SiteCache> = const { RefCell::new(SiteCache::new()) };
}

/// Begins a new recording.
pub(crate) fn begin(late: bool) {
    devices::forget_all();
    let clock = Clock::start();
    let ledger = Ledger::new(clock.origin(), HISTORY_SHIFT);
    let recording = Arc::new(Recording { ledger, clock, late });
    NEWEST.store(Some(recording.clone()));
    ACTIVE.store(Some(recording));
    ON.store(true, Ordering::Release);
}

/// Ends the recording; what it holds can still be read.
pub(crate) fn end() {
    switch_off();
    ACTIVE.store(None);
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

/// A shim that is being recorded: it holds on to its recording until it ends.
pub(crate) struct Entered(Guard<Option<Arc<Recording>>>);

impl Entered {
    /// `None` when shims only forward.
    #[inline]
    pub(crate) fn new() -> Option<Self> {
        if !is_on() {
            return None;
        }
        let active = ACTIVE.load();
        active.is_some().then(|| Entered(active))
    }

    /// Runs our own part of the shim; `None` if it failed.
    #[inline]
    pub(crate) fn run<T>(&self, work: impl FnOnce(&Recording) -> T) -> Option<T> {
        let recording = self.0.as_deref()?;
        fault::contained(|| work(recording))
    }
}

/// A pointer that an allocating call writes its result to.
pub(crate) type Out = *mut Pointer;

impl Recording {
    /// A call that allocates has returned.
    pub(crate) fn allocated(
        &self,
        kind: Kind,
        device: DeviceId,
        bytes: usize,
        out: Out,
        call: (UrResult, u64),
    ) {
        let (result, runtime_ticks) = call;
        let site = self.site(kind, device);
        if result != SUCCESS {
            self.ledger.failed(kind, device, site);
            return;
        }
        // SAFETY: the call succeeded, so it has written the block's address to the place its caller gave it.
        let address = unsafe { out.as_ref() }.map_or(0, |&block| block as usize);
        if address == 0 {
            return;
        }
        install::saw_allocation();
        let bytes = bytes as u64;
        let allocation = Allocation { address, bytes, kind, device, site, now: ticks(), runtime_ticks };
        let mut list = reference::order();
        self.ledger.allocated(allocation);
        if let Some(list) = &mut list {
            list.push(reference::ReferenceEvent { allocation: true, kind, device, bytes, site, address });
        }
    }

    /// A free is about to be forwarded.
    pub(crate) fn freeing(&self, pointer: Pointer) -> Option<Block> {
        let address = pointer as usize;
        if address == 0 {
            return None;
        }
        let mut list = reference::order();
        let block = self.ledger.freeing(address, ticks())?;
        reference::freed(&mut list, address, &block);
        Some(block)
    }

    /// The free has returned.
    pub(crate) fn freed(&self, pointer: Pointer, block: Option<Block>, call: (UrResult, u64)) {
        let (result, runtime_ticks) = call;
        let Some(block) = block else { return };
        self.ledger.spent_freeing(&block, runtime_ticks);
        if result != SUCCESS {
            self.ledger.free_refused(pointer as usize, block);
        }
    }

    /// A copy between two addresses was accepted. Blocks from before the recording may be unknown to the ledger; only
    /// then is the runtime asked about an address.
    pub(crate) fn copied(&self, queue: Handle, target: Pointer, source: Pointer, bytes: u64) {
        let kind = |pointer: Pointer| {
            let known = self.ledger.blocks().find(pointer as usize).map(|(_, block)| block.kind);
            known.or_else(|| if self.late { devices::kind_of(pointer, queue) } else { None })
        };
        if let Some(direction) = Direction::of(kind(source), kind(target)) {
            self.transferred(direction, bytes);
        }
    }

    /// A copy of known direction was accepted.
    pub(crate) fn transferred(&self, direction: Direction, bytes: u64) {
        with_stack(|raw, without| {
            let transfer = self.ledger.transfer(raw, without, direction, resolve);
            self.ledger.transferred(transfer, bytes);
        });
    }

    /// A fill was accepted.
    pub(crate) fn filled(&self, bytes: u64) {
        self.ledger.filled(bytes);
    }

    fn site(&self, kind: Kind, device: DeviceId) -> SiteId {
        with_stack(|raw, without| {
            SITES.with(|cache| {
                let mut cache = cache.borrow_mut();
                self.ledger.site(&mut cache, raw, without, (kind, device), resolve)
            })
        })
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
