//! The boundary that every shim goes through: forwards the call exactly once, unchanged, and enters what came of it.
//!
//! No panic of ours gets past [`recorder::enter`]; nothing of ours is held while the runtime works.

use dpmem_core::{Direction, Kind, SiteCache};

use crate::abi::{Handle, Pointer, SUCCESS, UrResult};
use crate::clock::{Begin, ticks};
use crate::pool::guard;
use crate::recorder::{self, Asked, Call, Out, Place, Recording};

/// Forwards, then enters what came of it.
pub(super) fn around(
    forward: impl FnOnce() -> UrResult,
    enter: impl FnOnce(&Recording, &mut SiteCache, Call),
) -> UrResult {
    if !recorder::is_on() {
        return forward();
    }
    let begin = Begin::now();
    let result = forward();
    let call = Call { result, start: begin.without_waits(), end: ticks() };
    recorder::enter(|recording, sites| enter(recording, sites, call));
    result
}

pub(super) fn allocation(
    forward: impl FnOnce() -> UrResult,
    kind: Kind,
    place: Place,
    bytes: usize,
    out: Out,
) -> UrResult {
    around(forward, |recording, sites, call| {
        recording.allocated(sites, Asked { kind, device: place.device(), bytes }, out, call);
    })
}

/// Enters a call that needs no entry when the runtime refuses it.
pub(super) fn accepted(forward: impl FnOnce() -> UrResult, enter: impl FnOnce(&Recording)) -> UrResult {
    around(forward, |recording, _, call| {
        if call.result == SUCCESS {
            enter(recording);
        }
    })
}

pub(super) fn enter_copy(recording: &Recording, direction: Direction, bytes: u64) {
    recording.transferred(direction, bytes);
}

pub(super) fn free(forward: impl FnOnce() -> UrResult, pointer: Pointer) -> UrResult {
    if !recorder::is_on() {
        return forward();
    }
    let freeing = recorder::enter(|recording, _| recording.freeing(pointer)).flatten();
    let begin = Begin::now();
    let result = forward();
    if let Some(freeing) = freeing {
        let call = Call { result, start: begin.without_waits(), end: ticks() };
        recorder::enter(|recording, _| recording.freed(&freeing, call));
    }
    result
}

/// Forwards a call that submits a command, then tells the guard.
pub(super) fn submitting(queue: Handle, forward: impl FnOnce() -> UrResult) -> impl FnOnce() -> UrResult {
    move || {
        let result = forward();
        guard::noted(queue);
        result
    }
}

/// Does something of ours, then forwards.
pub(super) fn before(ours: impl FnOnce(), forward: impl FnOnce() -> UrResult) -> UrResult {
    recorder::enter(|_, _| ours());
    forward()
}
