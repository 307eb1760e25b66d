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
//! A queue's last release passes through [`forget`], which puts a last marker in before the handle goes; whoever uses
//! the handle otherwise does so under the queue's lock and finds it alive.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::abi::{self, Handle, SUCCESS};
use crate::devices;
use crate::functions::original;

/// Markers of one queue that nobody has asked about; a queue with more gets new ones only when somebody does.
const MARKERS_MAX: usize = 64;

/// A small block costs the runtime less than a marker does; so for such blocks there is one marker for so many commands.
const SMALL_BYTES: u64 = 32 << 10;
const BATCH: u64 = 16;

/// Whether commands are counted.
static ON: AtomicBool = AtomicBool::new(false);
static QUEUES: RwLock<Vec<Arc<Queue>>> = RwLock::new(Vec::new());

thread_local! {
    /// The queue that this thread used last.
    static LAST: RefCell<Option<Arc<Queue>>> = const { RefCell::new(None) };
}

struct Queue {
    handle: usize,
    context: usize,
    /// Commands submitted.
    submitted: AtomicU64,
    /// Whether the handle may have gone.
    gone: AtomicBool,
    markers: Mutex<Markers>,
}

#[derive(Default)]
struct Markers {
    /// Behind how many commands, and the event; in order.
    placed: VecDeque<(u64, usize)>,
    /// This many commands are known to be done.
    done: u64,
}

/// Queues, and how many commands of each must be done.
pub(crate) struct Fence(Vec<(Arc<Queue>, u64)>);

/// Begins or ends counting.
pub(super) fn switch(on: bool) {
    ON.store(on, Ordering::Release);
}

/// Whether markers can be put in and asked about in this runtime, and every launch is seen.
pub(super) fn is_possible() -> bool {
    use crate::functions::Function;
    Function::GUARDING.iter().all(|f| f.is_known()) && Function::LAUNCHING.iter().any(|f| f.is_known())
}

/// A command has been submitted.
#[inline]
pub(crate) fn noted(queue: Handle) {
    if !ON.load(Ordering::Relaxed) || queue.is_null() {
        return;
    }
    let known = LAST.try_with(|last| {
        let last = last.borrow();
        let queue = last.as_ref().filter(|q| q.handle == queue as usize && !q.gone.load(Ordering::Acquire));
        queue.map(|queue| queue.submitted.fetch_add(1, Ordering::AcqRel)).is_some()
    });
    if known != Ok(true) {
        crate::fault::caught(|| note_new(queue));
    }
}

#[cold]
fn note_new(handle: Handle) {
    let Some(queue) = find_or_add(handle) else { return };
    queue.submitted.fetch_add(1, Ordering::AcqRel);
    let _ = LAST.try_with(|last| *last.borrow_mut() = Some(queue));
}

fn find_or_add(handle: Handle) -> Option<Arc<Queue>> {
    let find = |queues: &[Arc<Queue>]| queues.iter().find(|q| q.handle == handle as usize).cloned();
    if let Some(queue) = find(&QUEUES.read().unwrap_or_else(PoisonError::into_inner)) {
        return Some(queue);
    }
    let context = devices::context_of(handle)? as usize;
    let mut queues = QUEUES.write().unwrap_or_else(PoisonError::into_inner);
    Some(find(&queues).unwrap_or_else(|| {
        let queue = Arc::new(Queue {
            handle: handle as usize,
            context,
            submitted: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            markers: Mutex::default(),
        });
        queues.push(queue.clone());
        queue
    }))
}

/// The program has waited for all of a queue: `submitted` is what [`submitted`] said before.
pub(crate) fn finished(queue: Handle, submitted: u64) {
    if let Some(queue) = find(queue) {
        queue.lock().settle(submitted);
    }
}

/// How many commands a queue has been given.
pub(crate) fn submitted(queue: Handle) -> u64 {
    if !ON.load(Ordering::Relaxed) {
        return 0;
    }
    find(queue).map_or(0, |queue| queue.submitted.load(Ordering::Acquire))
}

fn find(handle: Handle) -> Option<Arc<Queue>> {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    queues.iter().find(|queue| queue.handle == handle as usize).cloned()
}

/// A reference to a queue is about to be released, perhaps the last. If it was not, the queue's next command makes it
/// known anew.
pub(crate) fn forget(handle: Handle) {
    let Some(queue) = find(handle) else { return };
    {
        let mut markers = queue.lock();
        let submitted = queue.submitted.load(Ordering::Acquire);
        if markers.newest() < submitted {
            queue.place(&mut markers, submitted);
        }
        queue.gone.store(true, Ordering::Release);
    }
    QUEUES.write().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, &queue));
}

/// What has to be done before memory of `context` that is freed now is at rest; `None` if it is.
pub(crate) fn fence(context: usize, bytes: u64) -> Option<Fence> {
    let least = if bytes <= SMALL_BYTES { BATCH } else { 1 };
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    let mut behind = Vec::new();
    for queue in queues.iter().filter(|queue| queue.context == context) {
        let submitted = queue.submitted.load(Ordering::Acquire);
        let mut markers = queue.lock();
        if markers.done >= submitted {
            continue;
        }
        if submitted - markers.newest().min(submitted) >= least && markers.placed.len() < MARKERS_MAX {
            queue.place(&mut markers, submitted);
        }
        behind.push((queue.clone(), submitted));
    }
    (!behind.is_empty()).then_some(Fence(behind))
}

/// Whether a fence has passed.
pub(crate) fn passed(fence: &Fence) -> bool {
    fence.0.iter().all(|(queue, submitted)| queue.is_done(*submitted, BATCH))
}

/// Waits for a fence until `patience` is over; whether it has passed.
pub(crate) fn wait(fence: &Fence, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_micros(5);
    if fence.0.iter().all(|(queue, submitted)| queue.is_done(*submitted, 1)) {
        return true;
    }
    fence.0.iter().for_each(|(queue, _)| queue.flush());
    while !passed(fence) {
        if Instant::now() >= deadline {
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

    /// Puts a marker in. The caller holds the queue's lock, so the handle stays alive meanwhile.
    fn place(&self, markers: &mut Markers, submitted: u64) {
        let Some(place) = original::events_wait() else { return };
        if self.gone.load(Ordering::Acquire) {
            return;
        }
        let mut event: Handle = std::ptr::null_mut();
        // SAFETY: the handle has not been released: `forget` marks it gone under the lock that the caller holds, before
        // the release goes through. An empty wait list stands for everything before, and the result has room.
        let result = unsafe { place(self.handle as Handle, 0, std::ptr::null(), &raw mut event) };
        if result != SUCCESS || event.is_null() {
            return;
        }
        markers.placed.push_back((submitted, event as usize));
    }

    /// What waits in a batch of the adapter's would never be done.
    fn flush(&self) {
        let _alive = self.lock();
        if let Some(flush) = original::queue_flush().filter(|_| !self.gone.load(Ordering::Acquire)) {
            // SAFETY: the handle has not been released, as in `place`.
            unsafe { flush(self.handle as Handle) };
        }
    }

    /// Whether so many commands are done. A marker that is lacking is put in if it stands for `least` commands.
    fn is_done(&self, submitted: u64, least: u64) -> bool {
        let mut markers = self.lock();
        if markers.done >= submitted {
            return true;
        }
        if markers.newest() < submitted {
            let now = self.submitted.load(Ordering::Acquire);
            if now - markers.newest() < least {
                return false;
            }
            self.place(&mut markers, now);
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

    /// So many commands are done, so the markers among them have served.
    fn settle(&mut self, done: u64) {
        self.done = self.done.max(done);
        while let Some(&(upto, event)) = self.placed.front()
            && upto <= self.done
        {
            self.placed.pop_front();
            if let Some(release) = original::event_release() {
                // SAFETY: the event came from `place`, and this is the one release of our one reference.
                unsafe { release(event as Handle) };
            }
        }
    }
}

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
