//! Free blocks: a list for each class, of one place.
//!
//! A lock for each class, held for a handful of instructions, so threads meet only if they use the same size on the
//! same device at the same moment. The newest block is tried first, because caches still know it; if it is not at rest,
//! the oldest, because it has waited longest.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::class;
use super::upstream::{Place, Upstream};
use super::visits::Visits;
use crate::sync::lock_std as lock;

/// `Held::asked` of a block that the program does not use.
pub(super) const FREE: u64 = u64::MAX;
/// `Held::asked` of a block that is upstream's business again, for whoever still has it in hand.
pub(super) const FORGOTTEN: u64 = u64::MAX - 1;

/// A block that the pool has taken from upstream.
pub(super) struct Held<F> {
    pub(super) place: Place,
    pub(super) address: usize,
    /// Its size upstream.
    pub(super) bytes: u64,
    /// Where it is kept when it is free, if it is.
    pub(super) shelf: Option<(Arc<Space<F>>, usize)>,
    /// The pool's era when it was taken.
    pub(super) era: u64,
    /// What the program asked for, [`FREE`] or [`FORGOTTEN`].
    pub(super) asked: AtomicU64,
}

pub(super) struct Free<F> {
    pub(super) held: Arc<Held<F>>,
    pub(super) fence: Option<F>,
    /// When it was freed, in order.
    pub(super) since: u64,
}

/// Where on a shelf.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// As the block that was freed last.
    Newest,
    /// Where [`Space::take_oldest`] found it.
    Oldest,
}

type Shelf<F> = Mutex<VecDeque<Free<F>>>;

/// The free blocks of one place.
pub(super) struct Space<F> {
    pub(super) place: Place,
    /// Who is busy with its free blocks. A closed space keeps none.
    pub(super) visits: Visits,
    shelves: Box<[Shelf<F>]>,
    /// How many free blocks there are, so that an empty space is passed over.
    count: AtomicUsize,
}

impl<F> Space<F> {
    pub(super) fn new(place: Place) -> Self {
        let shelves = (0..class::COUNT).map(|_| Mutex::new(VecDeque::new())).collect();
        Space { place, visits: Visits::new(), shelves, count: AtomicUsize::new(0) }
    }

    /// Keeps a block, unless the space is closed or `still` says no: asked under the lock, so that a shelf which is emptied
    /// after that has turned stays empty.
    pub(super) fn keep(
        &self,
        shelf: usize,
        free: Free<F>,
        end: End,
        still: impl FnOnce() -> bool,
    ) -> Result<(), Free<F>> {
        let mut list = lock(&self.shelves[shelf]);
        if self.visits.is_closed() || !still() {
            return Err(free);
        }
        match end {
            End::Newest => list.push_back(free),
            End::Oldest => list.push_front(free),
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A block at rest.
    pub(super) fn take_rested<U: Upstream<Fence = F>>(&self, upstream: &U, shelf: usize) -> Option<Free<F>> {
        let mut list = lock(&self.shelves[shelf]);
        let at_rest = |free: &Free<F>| free.fence.as_ref().is_none_or(|fence| upstream.passed(fence));
        let found = if list.back().is_some_and(at_rest) {
            list.pop_back()
        } else if list.len() > 1 && list.front().is_some_and(at_rest) {
            list.pop_front()
        } else {
            None
        };
        self.left(found)
    }

    /// The block that has been free for longest, at rest or not.
    pub(super) fn take_oldest(&self, shelf: usize) -> Option<Free<F>> {
        let found = lock(&self.shelves[shelf]).pop_front();
        self.left(found)
    }

    /// When the oldest block of each shelf that has one was freed.
    pub(super) fn oldest(&self) -> Vec<(u64, usize)> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let shelves = self.shelves.iter().enumerate();
        shelves.filter_map(|(n, shelf)| Some((lock(shelf).front()?.since, n))).collect()
    }

    /// Everything that is free.
    pub(super) fn drain(&self) -> Vec<Free<F>> {
        let all: Vec<_> = self.shelves.iter().flat_map(|shelf| std::mem::take(&mut *lock(shelf))).collect();
        self.count.fetch_sub(all.len(), Ordering::Relaxed);
        all
    }

    fn left(&self, found: Option<Free<F>>) -> Option<Free<F>> {
        if found.is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        found
    }
}
