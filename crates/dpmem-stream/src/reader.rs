//! The thread that reads.
//!
//! Protocol: a job waits in `queue` until the thread takes it, is in `working` while it is filled, and then in `ended`
//! with what came of it until somebody asks. The thread changes nothing but the bytes of the job's target, and gives
//! the job back whole: whatever it holds is dropped on the side of whoever asks or closes, never on the thread. After
//! `close` has returned no thread touches any target any more.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::{Block, Error, OpenFiles, fill};

/// Memory that is lent to be filled.
pub trait Target: Send {
    /// All of it.
    fn bytes(&mut self) -> &mut [u8];
}

/// A target and what goes into it.
pub struct Job {
    /// What is filled.
    pub target: Box<dyn Target>,
    /// With what.
    pub blocks: Vec<Block>,
}

/// The number of a job.
pub type Ticket = u64;

/// A thread and the jobs it has. Jobs are done in the order in which they came.
pub struct Reader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    came: Condvar,
    ended: Condvar,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    next: Ticket,
    queue: VecDeque<(Ticket, Job)>,
    working: Option<Ticket>,
    ended: HashMap<Ticket, (Result<(), Error>, Job)>,
}

impl Reader {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has none to give.
    pub fn start() -> Result<Reader, Error> {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("dpmem-stream".to_owned());
        let thread = thread.spawn(move || theirs.work()).map_err(Error::Thread)?;
        Ok(Reader { shared, thread: Some(thread), process: std::process::id() })
    }

    /// Hands a job over.
    ///
    /// # Errors
    /// The reader is closed, or stayed in another process; the job is dropped then.
    pub fn submit(&self, job: Job) -> Result<Ticket, Error> {
        self.usable()?;
        let mut state = self.shared.lock();
        let ticket = state.next;
        state.next += 1;
        state.queue.push_back((ticket, job));
        drop(state);
        self.shared.came.notify_one();
        Ok(ticket)
    }

    /// Whether a job has ended, well or not.
    ///
    /// # Errors
    /// The reader is closed, or stayed in another process.
    pub fn has_ended(&self, ticket: Ticket) -> Result<bool, Error> {
        self.usable()?;
        Ok(self.shared.lock().ended.contains_key(&ticket))
    }

    /// Waits for a job, for `patience` at most; None if it hasn't ended by then. Its end can be had once.
    ///
    /// # Errors
    /// What became of the job; or there is none of that number.
    pub fn wait(&self, ticket: Ticket, patience: Duration) -> Option<Result<(), Error>> {
        if let Err(error) = self.usable() {
            return Some(Err(error));
        }
        let deadline = Instant::now() + patience;
        let mut state = self.shared.lock();
        loop {
            if let Some((end, job)) = state.ended.remove(&ticket) {
                drop(state);
                drop(job);
                return Some(end);
            }
            if state.working != Some(ticket) && !state.queue.iter().any(|(queued, _)| *queued == ticket) {
                return Some(Err(Error::Closed));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.shared.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the thread, after the request it is at, and lets all jobs go.
    pub fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != std::process::id() {
            // There is no such thread here, and its lock may be held for ever. What it holds is the parent's.
            std::mem::forget((thread, self.shared.clone()));
            return;
        }
        self.shared.stop.store(true, Ordering::Release);
        drop(self.shared.lock());
        self.shared.came.notify_all();
        // It catches panics, so there is nothing to be told.
        let _ = thread.join();
        let mut state = self.shared.lock();
        let rest = (std::mem::take(&mut state.queue), std::mem::take(&mut state.ended));
        drop(state);
        drop(rest);
    }

    fn usable(&self) -> Result<(), Error> {
        if self.process != std::process::id() {
            return Err(Error::Forked);
        }
        if self.thread.is_none() { Err(Error::Closed) } else { Ok(()) }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does.
    fn work(&self) {
        let mut files = OpenFiles::default();
        while let Some((ticket, mut job)) = self.take() {
            let filled = catch_unwind(AssertUnwindSafe(|| {
                fill(&job.blocks, job.target.bytes(), &mut files, &self.stop)
            }));
            let end = filled.unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Err(Error::Fault(text.unwrap_or_else(|| "no text".to_owned())))
            });
            let mut state = self.lock();
            state.working = None;
            state.ended.insert(ticket, (end, job));
            drop(state);
            self.ended.notify_all();
        }
    }

    fn take(&self) -> Option<(Ticket, Job)> {
        let mut state = self.lock();
        loop {
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            if let Some((ticket, job)) = state.queue.pop_front() {
                state.working = Some(ticket);
                return Some((ticket, job));
            }
            state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
