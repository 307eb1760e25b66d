//! Somebody who wants to look at an operation while it is under way.
//!
//! The hook sees bytes and frames, not operands. When a line casts an operand for the first time, whoever asked for it is
//! told; it must not look itself on this thread, which may be without the GIL, but have somebody look soon.

use std::sync::OnceLock;

use dpmem_core::Frame;

type Notify = fn();

static NOTIFY: OnceLock<Notify> = OnceLock::new();

/// Has `notify` called at each new stack that casts an operand of an operation. It is called on the hook path: it must
/// not take the GIL, wait, print or allocate USM.
pub fn watch_casts(notify: Notify) {
    let _ = NOTIFY.set(notify);
}

/// A stack has been seen for the first time.
pub(crate) fn seen(frames: &[Frame]) {
    if let Some(notify) = NOTIFY.get()
        && dpmem_core::findings::casts_operand(frames)
    {
        notify();
    }
}
