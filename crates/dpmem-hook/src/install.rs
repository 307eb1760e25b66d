//! Puts the shims in, proves them, takes them out.
//!
//! There are two ways in:
//!
//! * [`arm`]: the shims come in at the program's first USM call ([`trigger`]), and that very allocation is the proof: if
//!   the shims see it, they are what the program's calls go through. If they don't, what was put in is taken out and the
//!   next way of finding the table is tried.
//! * [`start_now`], when the program has used USM already: the shims come in at once, the caller allocates and frees a
//!   probe of each kind, and [`prove`] compares.
//!
//! Where no way works, the phase is [`Phase::Failed`], nothing is left in the program, and the reason is kept.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dpmem_core::Kind;

use crate::error::Error;
use crate::locate::{self, Located, Route, Slot};
use crate::memory::{mappings, replace_pointer};
use crate::{fault, fork, functions, pool, recorder, reference, trigger};

/// Allocations of one thread that may go unseen before a way in counts as failed: the runtime answers some (of size
/// zero, say) without asking an adapter.
const UNSEEN_MAX: usize = 16;

/// How far the hook has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not in.
    Idle,
    /// Waiting for the program's first USM call.
    Armed,
    /// In.
    Installed,
    /// No way in worked.
    Failed,
}

/// What there is to say about the hook.
#[derive(Clone, Debug)]
pub struct Status {
    /// How far it has come.
    pub phase: Phase,
    /// How it sees calls, if it does.
    pub mechanism: Option<String>,
    /// What is not seen that way.
    pub gap: Option<&'static str>,
    /// Why no way in worked.
    pub reason: Option<Error>,
    /// Whether the shims have been seen to work.
    pub proved: bool,
    /// How many allocations went past before the way that works was found.
    pub unseen: usize,
    /// How many times our own part of a shim failed.
    pub faults: u64,
    /// The first such failure.
    pub fault: Option<String>,
    /// Whether events are being recorded.
    pub recording: bool,
}

struct State {
    phase: Phase,
    route: usize,
    mechanism: Option<String>,
    gap: Option<&'static str>,
    reason: Option<Error>,
    unseen: usize,
    swapped: Vec<Swapped>,
}

struct Swapped {
    slot: Slot,
    original: usize,
    shim: usize,
}

static STATE: Mutex<State> = Mutex::new(State {
    phase: Phase::Idle,
    route: 0,
    mechanism: None,
    gap: None,
    reason: None,
    unseen: 0,
    swapped: Vec::new(),
});
static PROVED: AtomicBool = AtomicBool::new(false);
/// To be called once the program has brought SYCL up and the shims are in; 0 for nothing.
static WHEN_IN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Allocations of this thread since the shims came in, none of which they saw.
    static UNSEEN: Cell<usize> = const { Cell::new(0) };
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether SYCL is up in this process. Does not bring it up.
pub fn runtime_is_up() -> bool {
    // The search looks for the runtime's own functions; while the shims are in, it isn't needed either.
    !fork::is_child() && (lock().phase == Phase::Installed || locate::runtime_is_up())
}

/// Begins to record from the program's next USM call on; `late` says that it may have made some already.
///
/// # Errors
/// In a forked child, and where import slots can't be changed.
pub fn arm(late: bool) -> Result<(), Error> {
    begin_anew()?;
    recorder::begin(late);
    lock().phase = Phase::Armed;
    trigger::set().inspect_err(|error| fail(&mut lock(), error.clone()))
}

/// Puts the shims in now if they wait for the program's first USM call; that call is the proof all the same. For a caller
/// who has brought SYCL up and needs to hear of its devices.
///
/// # Errors
/// In a forked child, and where no dispatch table is found; then they wait on.
pub fn come_in() -> Result<(), Error> {
    if fork::is_child() {
        return Err(Error::Forked);
    }
    let mut state = lock();
    if state.phase != Phase::Armed {
        return Ok(());
    }
    let route = state.route;
    put_in(&mut state).inspect_err(|_| state.route = route)
}

/// Puts the shims in at once and begins a recording on trial, which [`prove`] ends.
///
/// # Errors
/// In a forked child, and where no dispatch table is found.
pub fn start_now() -> Result<(), Error> {
    begin_anew()?;
    recorder::begin(true);
    let mut state = lock();
    match put_in(&mut state) {
        Ok(()) => Ok(()),
        Err(error) => {
            fail(&mut state, error.clone());
            Err(error)
        }
    }
}

/// Puts the shims in without a recording, for [`crate::observe_device`] alone. Allocates nothing.
///
/// # Errors
/// In a forked child, and where the dispatch table can't be found by symbols.
pub fn listen() -> Result<(), Error> {
    begin_anew()?;
    let mut state = lock();
    locate::locate(Route::Symbols).and_then(|located| swap(&mut state, located))
}

/// Compares the trial recording with what the caller did: allocations and frees per kind, in the order of
/// [`Kind::ALL`]. True: recording begins. False: try again, another way is in. An error: there is none left.
///
/// # Errors
/// [`Error::Unproved`] or what the last way failed with.
pub fn prove(expected: [u64; 3]) -> Result<bool, Error> {
    let seen = recorder::recording().map_or([0; 3], |recording| {
        Kind::ALL.map(|kind| {
            let totals = recording.ledger.totals(|k, _| k == kind);
            totals.alloc_count.min(totals.free_count)
        })
    });
    // Other threads may allocate meanwhile, so more is fine, and less is not.
    if seen.iter().zip(expected).all(|(&seen, expected)| seen >= expected) {
        PROVED.store(true, Ordering::Release);
        recorder::begin(true);
        return Ok(true);
    }
    let mut state = lock();
    let tries = expected.iter().sum::<u64>() as usize;
    take_out(&mut state);
    recorder::begin(true);
    next_way(&mut state, tries).map(|()| false)
}

/// Ends the recording and, unless a pool or a limit is on, takes everything out. What was recorded can still be read.
pub fn stop() {
    recorder::end();
    if fork::is_child() {
        return;
    }
    if pool::is_wanted() {
        // Only the recording ends.
        return;
    }
    remove();
}

/// Takes everything out, pool and limits included, whatever is on.
pub fn remove() {
    recorder::end();
    if fork::is_child() {
        return;
    }
    trigger::clear();
    let mut state = lock();
    take_out(&mut state);
    state.phase = Phase::Idle;
}

/// What there is to say.
pub fn status() -> Status {
    let (faults, fault) = fault::faults();
    let mut status = Status {
        phase: Phase::Idle,
        mechanism: None,
        gap: None,
        reason: Some(Error::Forked),
        proved: PROVED.load(Ordering::Acquire),
        unseen: 0,
        faults,
        fault,
        recording: recorder::is_on(),
    };
    if !fork::is_child() {
        let State { phase, mechanism, gap, reason, unseen, .. } = &*lock();
        (status.phase, status.gap, status.unseen) = (*phase, *gap, *unseen);
        (status.mechanism, status.reason) = (mechanism.clone(), reason.clone());
    }
    status
}

/// Has `call` called once, on the thread of the program's first USM call, when the shims have come in there.
pub fn when_in(call: fn()) {
    WHEN_IN.store(call as usize, Ordering::Release);
}

/// A trigger fired: the program is about to allocate USM.
pub(crate) fn first_call() {
    let mut state = lock();
    match state.phase {
        Phase::Armed => {
            if let Err(error) = put_in(&mut state) {
                fail(&mut state, error);
            }
        }
        Phase::Installed if !PROVED.load(Ordering::Acquire) => {
            let unseen = UNSEEN.get() + 1;
            UNSEEN.set(unseen);
            if unseen > UNSEEN_MAX {
                UNSEEN.set(0);
                take_out(&mut state);
                if let Err(error) = next_way(&mut state, unseen) {
                    fail(&mut state, error);
                }
            }
        }
        _ => {}
    }
    let over = state.phase == Phase::Failed || PROVED.load(Ordering::Acquire);
    drop(state);
    let call = WHEN_IN.swap(0, Ordering::AcqRel);
    if call != 0 {
        // SAFETY: only `when_in` stores here, and what it stores is a function of this type.
        let call: fn() = unsafe { std::mem::transmute(call) };
        call();
    }
    if over {
        trigger::clear();
    }
}

/// A shim has seen an allocation succeed: the proof.
#[inline]
pub(crate) fn saw_allocation() {
    if !PROVED.load(Ordering::Relaxed) {
        PROVED.store(true, Ordering::Release);
    }
}

fn begin_anew() -> Result<(), Error> {
    if fork::is_child() {
        return Err(Error::Forked);
    }
    fork::watch();
    fault::quiet_panics();
    fault::reset();
    stop();
    PROVED.store(false, Ordering::Release);
    let mut state = lock();
    (state.route, state.unseen) = (0, 0);
    (state.mechanism, state.gap, state.reason) = (None, None, None);
    Ok(())
}

/// Puts the shims in by the current way, or by the next that works.
fn put_in(state: &mut State) -> Result<(), Error> {
    let mut first = None;
    while let Some(&route) = Route::ALL.get(state.route) {
        match locate::locate(route).and_then(|located| swap(state, located)) {
            Ok(()) => return Ok(()),
            Err(error) => {
                first.get_or_insert(error);
                state.route += 1;
            }
        }
    }
    Err(first.unwrap_or(Error::NoRuntime))
}

fn next_way(state: &mut State, tries: usize) -> Result<(), Error> {
    state.unseen += tries;
    state.route += 1;
    let mechanism = state.mechanism.take().unwrap_or_default();
    put_in(state).map_err(|_| Error::Unproved { tries: state.unseen, mechanism })
}

fn swap(state: &mut State, located: Located) -> Result<(), Error> {
    let maps = mappings();
    for slot in located.slots {
        let Some(shim) = slot.function.shim() else {
            // SAFETY: `locate` found the word: aligned, mapped, in use as long as the runtime.
            slot.function.set_original(unsafe { std::ptr::read_volatile(slot.address as *const usize) });
            continue;
        };
        // SAFETY: as above.
        let original = unsafe { std::ptr::read_volatile(slot.address as *const usize) };
        if original == shim {
            continue;
        }
        slot.function.set_original(original);
        // SAFETY: as above; whoever calls through the slot reads it as a whole, and finds either function there.
        match unsafe { replace_pointer(slot.address, original, shim, &maps, slot.function.name()) } {
            Ok(true) => state.swapped.push(Swapped { slot, original, shim }),
            Ok(false) => {}
            Err(error) => {
                take_out(state);
                return Err(error);
            }
        }
    }
    state.mechanism = Some(located.mechanism);
    state.gap = located.gap;
    functions::set_submissions_are_seen(located.submissions_are_seen);
    state.phase = Phase::Installed;
    pool::came_in();
    reference::began();
    Ok(())
}

/// Gives every slot its function back. A slot that somebody changed after us keeps what it has; our shim then goes on
/// forwarding.
fn take_out(state: &mut State) {
    pool::leave();
    let maps = mappings();
    for Swapped { slot, original, shim } in state.swapped.drain(..).rev() {
        // SAFETY: `swap` found and changed this slot; the table lives as long as the runtime.
        let _ = unsafe { replace_pointer(slot.address, shim, original, &maps, slot.function.name()) };
    }
}

fn fail(state: &mut State, error: Error) {
    recorder::switch_off();
    state.phase = Phase::Failed;
    state.reason = Some(error);
}
