//! When freed memory is at rest.
//!
//! A block may be handed out again when no command that was submitted before its free can still run. Which commands
//! touch which block is not to be known (a kernel's arguments may lead anywhere), so a free waits for everything that
//! the queues of its context had been given by then.
//!
//! Each queue counts the commands that were submitted ([`noted`], *after* the submission has returned, so that a marker
//! put in later is behind it). A free takes the count of each queue that is not known to be idle, and sees to it that a
//! **marker** stands behind that many commands: a command of no work whose event tells that all before it are done, in
//! in-order and out-of-order queues alike. One marker serves all frees between two submissions. [`Fence`] is what a free
//! has to wait for.
//!
//! A queue's release passes through [`forget`], which puts a last marker in before the handle may go; whoever uses the
//! handle otherwise does so under the queue's lock and finds it alive. What was submitted goes on running after that, so
//! the queue stays in the list until its last marker has passed.
//!
//! If the runtime takes no marker any more, or this fails itself, nothing can be known: the guard is [`is_lost`], and
//! nothing is cached.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

use dpmem_core::pool::Submissions;

use crate::abi::{self, Handle, SUCCESS};
use crate::functions::{Function, original, submissions_are_seen};
use crate::{devices, fault, fork};

/// Markers of one queue that nobody has asked about; a queue with more gets new ones only when somebody does.
const MARKERS_MAX: usize = 64;

/// A marker costs the runtime more than a small block does. So small blocks share one: as many as make up this much, and
/// no more than so many.
const SHARE_BYTES: u64 = 512 << 10;
const BATCH: u64 = 16;

/// Whether commands are counted.
static ON: AtomicBool = AtomicBool::new(false);
/// Whether a marker has been refused, or a command not been noted.
static LOST: AtomicBool = AtomicBool::new(false);
/// For tests: whether markers are refused.
static REFUSE: AtomicBool = AtomicBool::new(false);
static QUEUES: RwLock<Vec<Arc<Queue>>> = RwLock::new(Vec::new());

thread_local! {
    /// The queue that this thread used last.
    static LAST: RefCell<Option<Arc<Queue>>> = const { RefCell::new(None) };
}

struct Queue {
    handle: usize,
    context: usize,
    /// Left when the handle may have gone.
    submissions: Submissions,
    markers: Mutex<Markers>,
}

#[derive(Default)]
struct Markers {
    /// Behind how many commands, and the event; in order.
    placed: VecDeque<(u64, usize)>,
    /// This many commands are known to be done.
    done: u64,
    /// How many commands there were when somebody last asked for a marker that is lacking, and how often that has been
    /// asked since without any more coming.
    seen: u64,
    asked: u64,
}

/// What a block waits for.
pub(crate) struct Fence {
    /// Queues, and how many commands of each must be done.
    behind: Vec<(Arc<Queue>, u64)>,
    /// How many commands share a marker where blocks have this one's size.
    least: u64,
}

/// A queue, and how many commands it had been given at a moment.
pub(crate) struct Submitted {
    queue: Arc<Queue>,
    count: u64,
}

/// Begins or ends counting. Ending only stores to an atomic, so it is safe in a forked child.
pub(super) fn switch(on: bool) {
    if on {
        begin();
    } else {
        ON.store(false, Ordering::Release);
    }
}

/// What happened while nobody counted is not known: a queue may be gone, and its handle another's. So all begin anew.
fn begin() {
    let mut queues = QUEUES.write().unwrap_or_else(PoisonError::into_inner);
    if ON.load(Ordering::Acquire) {
        return;
    }
    queues.drain(..).for_each(|queue| queue.abandon());
    ON.store(true, Ordering::Release);
}

/// Whether markers can be put in and asked about in this runtime, and everything that is submitted is seen.
pub(super) fn is_possible() -> bool {
    Function::GUARDING.iter().all(|f| f.is_known()) && submissions_are_seen() && !is_lost()
}

/// Whether it can't be known any more when memory is at rest.
#[inline]
pub(super) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// For tests: has markers refused from now on.
pub(crate) fn refuse_markers() {
    REFUSE.store(true, Ordering::Relaxed);
}

/// A command has been submitted.
#[inline]
pub(crate) fn noted(queue: Handle) {
    if !ON.load(Ordering::Relaxed) || queue.is_null() {
        return;
    }
    let known = LAST.try_with(|last| {
        let last = last.borrow();
        last.as_ref().is_some_and(|last| last.handle == queue as usize && last.submissions.note())
    });
    if known != Ok(true) {
        sure(|| note_new(queue));
    }
}

/// What was to be noted and could not be is a command that nobody waits for.
fn sure(work: impl FnOnce()) {
    if fault::caught_nested(work).is_none() {
        LOST.store(true, Ordering::Relaxed);
    }
}

#[cold]
fn note_new(handle: Handle) {
    while let Some(queue) = find_or_add(handle) {
        // Another thread may let go of one of its references just now.
        if queue.submissions.note() {
            let _ = LAST.try_with(|last| *last.borrow_mut() = Some(queue));
            return;
        }
    }
    // Whose memory the command may use is not known.
    LOST.store(true, Ordering::Relaxed);
}

fn find_or_add(handle: Handle) -> Option<Arc<Queue>> {
    if let Some(queue) = find(handle) {
        return Some(queue);
    }
    let context = devices::context_of(handle)? as usize;
    let mut queues = QUEUES.write().unwrap_or_else(PoisonError::into_inner);
    queues.retain(|queue| !queue.has_served());
    Some(find_in(&queues, handle).unwrap_or_else(|| {
        let queue = Arc::new(Queue {
            handle: handle as usize,
            context,
            submissions: Submissions::default(),
            markers: Mutex::default(),
        });
        queues.push(queue.clone());
        queue
    }))
}

/// What a queue has been given so far, for somebody who is about to wait for all of it; `None` if that is nothing.
pub(crate) fn submitted(handle: Handle) -> Option<Submitted> {
    if !ON.load(Ordering::Relaxed) {
        return None;
    }
    let queue = find(handle)?;
    let count = queue.submissions.count();
    (count > 0).then_some(Submitted { queue, count })
}

impl Submitted {
    /// It is done. Meanwhile the queue may have been left and be known anew under its handle, with a count of its own.
    pub(crate) fn finished(self) {
        self.queue.lock().settle(self.count);
    }
}

fn find(handle: Handle) -> Option<Arc<Queue>> {
    find_in(&QUEUES.read().unwrap_or_else(PoisonError::into_inner), handle)
}

fn find_in(queues: &[Arc<Queue>], handle: Handle) -> Option<Arc<Queue>> {
    let mut queues = queues.iter().filter(|queue| !queue.submissions.is_left());
    queues.find(|queue| queue.handle == handle as usize).cloned()
}

/// A reference to a queue is about to be released, perhaps the last. If it was not, the queue's next command makes it
/// known anew.
pub(crate) fn forget(handle: Handle) {
    // A forked child takes no lock.
    if !fork::is_child() {
        sure(|| leave(handle));
    }
}

fn leave(handle: Handle) {
    let Some(queue) = find(handle) else { return };
    {
        let mut markers = queue.lock();
        if queue.submissions.is_left() {
            return;
        }
        let submitted = queue.submissions.leave();
        if markers.newest() < submitted {
            queue.place(&mut markers, submitted);
        }
    }
    QUEUES.write().unwrap_or_else(PoisonError::into_inner).retain(|queue| !queue.has_served());
}

/// What has to be done before memory of `context` that is freed now is at rest; `None` if it is.
pub(crate) fn fence(context: usize, bytes: u64) -> Option<Fence> {
    let least = (SHARE_BYTES / bytes.max(1)).clamp(1, BATCH);
    // The list's lock is given back before a marker goes in: the runtime may have that wait.
    let mut behind: Vec<(Arc<Queue>, u64)> = {
        let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
        let of_context = queues.iter().filter(|queue| queue.context == context);
        of_context.map(|queue| (queue.clone(), queue.submissions.count())).collect()
    };
    behind.retain(|(queue, submitted)| queue.mark_unless_idle(*submitted, least));
    (!behind.is_empty()).then_some(Fence { behind, least })
}

/// Whether a fence has passed.
pub(crate) fn passed(fence: &Fence) -> bool {
    fence.behind.iter().all(|(queue, submitted)| queue.is_done(*submitted, fence.least))
}

/// Waits for a fence until `patience` is over; whether it has passed.
pub(crate) fn wait(fence: &Fence, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_micros(5);
    // Each queue is asked, so that each gets the marker that may be lacking.
    let passed =
        || fence.behind.iter().filter(|(queue, submitted)| !queue.is_done(*submitted, 1)).count() == 0;
    while !passed() {
        if Instant::now() >= deadline || is_lost() {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(1));
    }
    true
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Markers> {
        self.markers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Unless so many commands are known to be done, puts a marker in behind them where it is lacking and stands for
    /// `least`. Whether there is something to wait for.
    fn mark_unless_idle(&self, submitted: u64, least: u64) -> bool {
        let mut markers = self.lock();
        if markers.done >= submitted {
            return false;
        }
        if submitted.saturating_sub(markers.newest()) >= least && markers.placed.len() < MARKERS_MAX {
            self.place_if_alive(&mut markers, submitted);
        }
        true
    }

    /// Puts a marker in, unless the handle may have gone. The caller holds the queue's lock, so it stays alive meanwhile.
    fn place_if_alive(&self, markers: &mut Markers, submitted: u64) {
        if !self.submissions.is_left() {
            self.place(markers, submitted);
        }
    }

    /// Puts a marker in. The caller holds the queue's lock and knows the handle to be alive.
    fn place(&self, markers: &mut Markers, submitted: u64) {
        let Some(place) = original::events_wait().filter(|_| !REFUSE.load(Ordering::Relaxed)) else {
            LOST.store(true, Ordering::Relaxed);
            return;
        };
        let mut event: Handle = std::ptr::null_mut();
        // SAFETY: the handle has not been released: `forget` leaves the queue under the lock that the caller holds, and
        // before the release goes through. An empty wait list stands for everything before, and the result has room.
        let result = unsafe { place(self.handle as Handle, 0, std::ptr::null(), &raw mut event) };
        if result != SUCCESS || event.is_null() {
            LOST.store(true, Ordering::Relaxed);
            return;
        }
        markers.placed.push_back((submitted, event as usize));
    }

    /// Whether the handle may have gone and nothing waits for what the queue was given. Asked under the list's lock, so
    /// it doesn't wait for a thread that puts a marker in: such a queue goes the next time.
    fn has_served(&self) -> bool {
        let markers = match self.markers.try_lock() {
            Ok(markers) => Some(markers),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        self.submissions.is_left()
            && markers
                .is_some_and(|mut markers| self.is_done_by(&mut markers, self.submissions.count(), u64::MAX))
    }

    /// The handle may have gone without a word. Fences of before that have not passed never will.
    fn abandon(&self) {
        let mut markers = self.lock();
        self.submissions.leave();
        markers.placed.drain(..).for_each(|(_, event)| release(event));
    }

    /// Whether so many commands are done. A marker that is lacking is put in if it stands for `least` commands. Asking in
    /// vain counts as a command: a queue that gets no more of them must not keep blocks from being used again.
    fn is_done(&self, submitted: u64, least: u64) -> bool {
        self.is_done_by(&mut self.lock(), submitted, least)
    }

    /// The same for a caller that holds the queue's lock.
    fn is_done_by(&self, markers: &mut Markers, submitted: u64, least: u64) -> bool {
        if markers.done >= submitted {
            return true;
        }
        if markers.newest() < submitted {
            let now = self.submissions.count();
            let asked = markers.asked_at(now);
            if (now - markers.newest()).saturating_add(asked) < least {
                return false;
            }
            self.place_if_alive(markers, now);
        }
        let Some(&(upto, event)) = markers.placed.iter().find(|&&(upto, _)| upto >= submitted) else {
            return false;
        };
        let complete = is_complete(event);
        if complete {
            markers.settle(upto);
        }
        complete
    }
}

impl Markers {
    fn newest(&self) -> u64 {
        self.placed.back().map_or(self.done, |&(upto, _)| upto.max(self.done))
    }

    /// Notes that a marker is lacking; how often that was so before with the same commands.
    fn asked_at(&mut self, now: u64) -> u64 {
        if self.seen == now {
            self.asked += 1;
        } else {
            (self.seen, self.asked) = (now, 0);
        }
        self.asked
    }

    /// So many commands are done, so the markers among them have served.
    fn settle(&mut self, done: u64) {
        self.done = self.done.max(done);
        while let Some(&(upto, event)) = self.placed.front()
            && upto <= self.done
        {
            self.placed.pop_front();
            release(event);
        }
    }
}

/// Lets an event go that has been taken out of the markers of its queue.
fn release(event: usize) {
    if let Some(release) = original::event_release() {
        // SAFETY: the event came from `place`, and this is the one release of our one reference: whoever takes an event
        // out of the markers comes here once.
        unsafe { release(event as Handle) };
    }
}

/// Asking sends off what an adapter has kept for a batch; flushing the queue for it would block with some.
fn is_complete(event: usize) -> bool {
    let Some(info) = original::event_info() else { return false };
    let mut status = i32::MAX;
    let into = (&raw mut status).cast();
    // SAFETY: the event is ours and not released yet: both happen under the queue's lock. The answer is one 32-bit
    // number.
    let result = unsafe {
        info(event as Handle, abi::EVENT_INFO_STATUS, size_of::<i32>(), into, std::ptr::null_mut())
    };
    result == SUCCESS && status <= abi::EVENT_COMPLETE
}

#[cfg(test)]
mod tests;
