//! Who is busy with the free blocks of a place, and that its owner outlives them.
//!
//! Protocol: one word holds how many there are and whether the place has been closed. Whoever takes a block off a shelf
//! has come in before, and goes when the block is the program's, on a shelf again or upstream's. The last to go from a
//! closed place lets go of the owner; so does nobody before, and nobody twice. Closing is done by one who has come in. A
//! block that goes straight from its shelf to the program needs no visit: the program's own call keeps the owner.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::shelf::Space;
use super::upstream::Upstream;
use crate::sync::AtomicU64;

const CLOSED: u64 = 1 << 63;

pub(super) struct Visits(AtomicU64);

impl Visits {
    pub(super) fn new() -> Self {
        Visits(AtomicU64::new(0))
    }

    /// Comes in; false if the place has been closed.
    #[must_use]
    pub(super) fn enter(&self) -> bool {
        let mut word = self.0.load(Acquire);
        while word & CLOSED == 0 {
            match self.0.compare_exchange_weak(word, word + 1, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Goes; true if the owner is to be let go of.
    #[must_use]
    pub(super) fn leave(&self) -> bool {
        self.0.fetch_sub(1, AcqRel) == CLOSED | 1
    }

    /// Nobody else comes in from now on.
    pub(super) fn close(&self) {
        self.0.fetch_or(CLOSED, AcqRel);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.load(Acquire) & CLOSED != 0
    }
}

/// This thread may take blocks off the shelves of a space while it lives.
pub(super) struct Visit<'a, U: Upstream> {
    upstream: &'a U,
    space: &'a Space<U::Fence>,
}

impl<'a, U: Upstream> Visit<'a, U> {
    /// None if the space has been closed.
    pub(super) fn new(upstream: &'a U, space: &'a Space<U::Fence>) -> Option<Self> {
        space.visits.enter().then_some(Visit { upstream, space })
    }
}

impl<U: Upstream> Drop for Visit<'_, U> {
    fn drop(&mut self) {
        if self.space.visits.leave() {
            self.upstream.release(self.space.place.owner);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_go_from_a_closed_place_lets_go_of_the_owner() {
        let visits = Visits::new();
        assert!(visits.enter() && !visits.leave(), "it is open");
        assert!(visits.enter() && visits.enter());
        visits.close();
        assert!(visits.is_closed() && !visits.enter());
        assert!(!visits.leave() && visits.leave());
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use loom::thread;

    use super::*;

    /// A thread uses blocks of a place while another closes it: the owner is let go of once, with nobody inside.
    #[test]
    fn the_owner_is_let_go_of_once_and_with_nobody_inside() {
        loom::model(|| {
            let visits = Arc::new(Visits::new());
            let releases = Arc::new(AtomicUsize::new(0));
            let visit = |closes: bool| {
                let (visits, releases) = (visits.clone(), releases.clone());
                move || {
                    if !visits.enter() {
                        assert!(!closes, "only the closer closes");
                        return;
                    }
                    if closes {
                        visits.close();
                    }
                    assert_eq!(releases.load(Relaxed), 0, "the owner is still there");
                    if visits.leave() {
                        releases.fetch_add(1, Relaxed);
                    }
                }
            };
            let visitor = thread::spawn(visit(false));
            visit(true)();
            visitor.join().expect("no panic");
            assert_eq!(releases.load(Relaxed), 1);
        });
    }
}
