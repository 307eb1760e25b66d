//! What happens when dpmem itself fails: recording stops, the reason is kept for the report, the program runs on.

use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, Once};

use crate::recorder;

/// A fault that tests can order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A panic while the n-th event from now is entered; 0 for none.
    PanicAt(usize),
    /// No table can be found by symbols.
    NoSymbols,
    /// No table can be found at all.
    NoWayIn,
    /// What is found by symbols is a table that nobody calls through.
    DeadTable,
    /// The runtime takes no markers any more.
    NoMarkers,
    /// The runtime doesn't say what a device can hold.
    NoCapacity,
}

static FAULTS: AtomicU64 = AtomicU64::new(0);
static REASON: Mutex<Option<String>> = Mutex::new(None);
/// Events until an ordered panic; 0 for none.
static PANIC_AFTER: AtomicUsize = AtomicUsize::new(0);
static PANIC_ORDERED: AtomicBool = AtomicBool::new(false);
/// Another ordered fault.
static ORDERED: Mutex<Option<Fault>> = Mutex::new(None);

thread_local! {
    static RECORDING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    /// How deep this thread is in work that may be entered again from inside.
    static NESTED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Runs what we do on a thread of the program's outside a shim. A panic in it ends the recording and goes no further; so does an attempt to enter it
/// again from inside.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    if RECORDING.replace(true) {
        missed();
        return None;
    }
    let result = caught(work);
    RECORDING.set(false);
    result
}

/// Runs our own part of a shim without a guard against entering it again, which the caller has.
#[inline]
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(|| {
        if PANIC_ORDERED.load(Relaxed) {
            fail_if_ordered();
        }
        work()
    }));
    result.map_err(|_| recorder::give_up()).ok()
}

/// Runs our own part of a shim that may be entered again from inside: the pool's.
#[inline]
pub(crate) fn caught_nested<T>(work: impl FnOnce() -> T) -> Option<T> {
    let change = |by: i32| NESTED.try_with(|depth| depth.set(depth.get().wrapping_add_signed(by)));
    let _ = change(1);
    let result = caught(work);
    let _ = change(-1);
    result
}

/// An event could not be entered.
pub(crate) fn missed() {
    FAULTS.fetch_add(1, Relaxed);
}

/// Whether this thread is in our own part already: what it calls there is ours and not the program's.
pub(crate) fn is_inside() -> bool {
    RECORDING.get() || recorder::is_entered()
}

#[cold]
fn fail_if_ordered() {
    if PANIC_AFTER.load(Relaxed) > 0 && PANIC_AFTER.fetch_sub(1, Relaxed) == 1 {
        PANIC_ORDERED.store(false, Relaxed);
        panic!("a fault that a test ordered");
    }
}

/// Orders a fault.
pub fn inject(fault: Fault) {
    match fault {
        Fault::PanicAt(after) => {
            PANIC_AFTER.store(after, Relaxed);
            PANIC_ORDERED.store(after > 0, Relaxed);
        }
        Fault::NoMarkers => crate::pool::guard::refuse_markers(),
        other => *ORDERED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(other),
    }
}

/// The fault that a test ordered for the search.
pub(crate) fn ordered() -> Option<Fault> {
    *ORDERED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// How many times our own part of a shim failed, and the first reason.
pub(crate) fn faults() -> (u64, Option<String>) {
    let reason = REASON.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    (FAULTS.load(Relaxed), reason)
}

/// Forgets earlier faults.
pub(crate) fn reset() {
    FAULTS.store(0, Relaxed);
    *REASON.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
}

/// Keeps a panic inside a shim from printing; it is told once in the report instead. Others print as ever.
pub(crate) fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if is_inside() || NESTED.try_with(std::cell::Cell::get).is_ok_and(|depth| depth > 0) {
                keep(info);
            } else {
                usual(info);
            }
        }));
    });
}

fn keep(info: &PanicHookInfo<'_>) {
    FAULTS.fetch_add(1, Relaxed);
    let text = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map_or(String::new(), |at| format!(" at {}:{}", at.file(), at.line()));
    let mut reason = REASON.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    reason.get_or_insert_with(|| format!("{text}{place}"));
}
