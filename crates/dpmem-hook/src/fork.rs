//! A forked child records nothing: the runtime doesn't survive a fork, and our locks may be held by threads that are
//! not there any more. The child's first act is to switch every shim and trigger to plain forwarding; after that no
//! lock of ours is taken in it.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{pool, recorder};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process is a forked child of one in which dpmem was active.
pub fn is_child() -> bool {
    FORKED.load(Ordering::Acquire)
}

/// Makes sure that children find out.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    // SAFETY: the handler is a plain function that only stores to atomics, which is allowed after a fork.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

unsafe extern "C" fn in_child() {
    FORKED.store(true, Ordering::Release);
    recorder::switch_off();
    pool::leave_child();
}
