//! Somebody who wants to look at an operation while it is under way.
//!
//! The hook sees bytes and frames, not operands, and not always a name. At a new stack that is worth a look, whoever asked
//! for it is told; it must not look itself on this thread, which may be without the GIL, but have somebody look soon.

use std::sync::OnceLock;

use dpmem_core::Frame;

type Notify = fn();

static NOTIFY: OnceLock<Notify> = OnceLock::new();

/// Has `notify` called at each new stack that is worth a look. It is called on the hook path: it must
/// not take the GIL, wait, print or allocate USM.
pub fn watch_operations(notify: Notify) {
    let _ = NOTIFY.set(notify);
}

/// A stack has been seen for the first time.
pub(crate) fn seen(frames: &[Frame]) {
    if let Some(notify) = NOTIFY.get()
        && dpmem_core::findings::wants_a_look(frames)
    {
        notify();
    }
}
