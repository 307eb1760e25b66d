//! How many commands a queue has been given, by threads that submit while another one may let go of the queue.
//!
//! Protocol: one word holds the count and whether the queue has been left, so every command is either part of what
//! [`Submissions::leave`] answers, or the thread that submitted it learns that it has to be counted elsewhere.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::sync::AtomicU64;

const LEFT: u64 = 1 << 63;

/// The commands of one queue.
pub struct Submissions(AtomicU64);

impl Default for Submissions {
    fn default() -> Self {
        Submissions(AtomicU64::new(0))
    }
}

impl Submissions {
    /// A command has been submitted; false if it must be counted elsewhere, because the queue has been left.
    pub fn note(&self) -> bool {
        let mut word = self.0.load(Acquire);
        while word & LEFT == 0 {
            match self.0.compare_exchange_weak(word, word + 1, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// How many have been submitted.
    pub fn count(&self) -> u64 {
        self.0.load(Acquire) & !LEFT
    }

    /// No more will be counted. How many there have been.
    pub fn leave(&self) -> u64 {
        self.0.fetch_or(LEFT, AcqRel) & !LEFT
    }

    /// Whether the queue has been left.
    pub fn is_left(&self) -> bool {
        self.0.load(Acquire) & LEFT != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_leaving_is_not_counted() {
        let submissions = Submissions::default();
        assert!(submissions.note() && submissions.note() && !submissions.is_left());
        assert_eq!(submissions.leave(), 2);
        assert!(submissions.is_left() && !submissions.note());
        assert_eq!((submissions.count(), submissions.leave()), (2, 2));
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    use super::*;

    /// Two threads submit while a third leaves: no command is lost, none is counted twice, and one that was counted had
    /// been submitted when the leaver's marker went in behind it.
    #[test]
    fn every_command_is_counted_once() {
        loom::model(|| {
            let submissions = Arc::new(Submissions::default());
            let submitted = Arc::new(AtomicUsize::new(0));
            let submit = || {
                let (submissions, submitted) = (submissions.clone(), submitted.clone());
                thread::spawn(move || {
                    submitted.fetch_add(1, loom::sync::atomic::Ordering::Relaxed);
                    u64::from(submissions.note())
                })
            };
            let threads = [submit(), submit()];
            let left = submissions.leave();
            let seen = submitted.load(loom::sync::atomic::Ordering::Relaxed) as u64;
            assert!(left <= seen, "counted before it was submitted");
            let counted: u64 = threads.map(|thread| thread.join().expect("no panic")).into_iter().sum();
            assert_eq!(counted, left);
            assert_eq!(submissions.count(), left, "nothing is counted after leaving");
        });
    }
}
