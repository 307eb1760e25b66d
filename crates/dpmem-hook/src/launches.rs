//! Which lines launch kernels, and how often.
//!
//! A launch that the runtime then refuses has been counted; the counts serve comparisons only.

use std::cell::Cell;

use crate::recorder;

/// Launches of a thread that are all looked at; after them, every [`SAMPLED`]th is, and stands for that many.
const ALL_UP_TO: u64 = 4096;
const SAMPLED: u64 = 16;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// A launch is about to be forwarded.
pub(crate) fn launching() {
    if !recorder::is_on() {
        return;
    }
    let count = COUNT.try_with(|count| count.replace(count.get() + 1)).unwrap_or(0);
    if count < ALL_UP_TO {
        recorder::enter(|recording, _| recording.launched(1));
    } else if count.is_multiple_of(SAMPLED) {
        recorder::enter(|recording, _| recording.launched(SAMPLED));
    }
}
