//! Copies to the host that a thread has begun and not yet waited for.
//!
//! What was fetched is looked at when the thread has waited for it and before it gets to use it: later the program may
//! have written over it. A thread remembers its newest copy only; the library waits for each at once.

use std::cell::Cell;

use dpmem_core::TransferId;

/// A copy to the host.
#[derive(Clone, Copy)]
pub(crate) struct Fetch {
    /// The ledger that counts it.
    pub(crate) ledger: u64,
    /// The event that ends with it.
    pub(crate) event: usize,
    pub(crate) transfer: TransferId,
    /// Where it goes.
    pub(crate) address: usize,
    pub(crate) bytes: u64,
}

thread_local! {
    static NEWEST: Cell<Option<Fetch>> = const { Cell::new(None) };
}

/// This thread has begun a copy.
pub(crate) fn began(fetch: Fetch) {
    let _ = NEWEST.try_with(|newest| newest.set(Some(fetch)));
}

/// The copy that this thread is about to wait for, if it is among the events that `waits_for` accepts.
pub(crate) fn awaited(waits_for: impl FnOnce(usize) -> bool) -> Option<Fetch> {
    let newest = NEWEST.try_with(Cell::get).ok().flatten()?;
    if !waits_for(newest.event) {
        return None;
    }
    let _ = NEWEST.try_with(Cell::take);
    Some(newest)
}
