//! The way out of a shortage: what is tried, in order, before a request fails; and who is told when it does.
//!
//! The stages: give cached blocks at rest back; wait for work that is queued, also for what dpctl keeps alive for it;
//! run Python's cyclic collector; call the program's callbacks. After each the request is tried again, and what helped
//! is counted. Only for requests that failed for lack of memory ([`is_one`]): no stage helps one that is wrong in itself.
//!
//! This is the one place on the hook path that may enter Python, and then only: on a thread that Python knows; with no
//! lock of ours held (the shim has not entered the recording yet, and the pool has returned); and every wait is bounded.
//! Waits of our own let the GIL be: a thread that holds it goes through Python to wait, which releases it.
//!
//! No stage begins inside another: a request that fails inside a callback, or inside a destructor that the collector
//! runs, gets what is cached and at rest ([`overcome_inside`]), and otherwise fails at once and is explained. One that
//! fails inside an explanation just fails.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use dpmem_core::pool::{Place, Pool, Refused, Rescue, Trim};
use dpmem_core::{DeviceId, Kind};

use super::runtime::{self, Runtime};
use super::{Request, guard};
use crate::abi::{self, UrResult};
use crate::{devices, fault, frames};

/// How long queued work is waited for on this side, where Python does not take part.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often callbacks that say that they have freed something are believed.
const CALLBACK_ROUNDS: usize = 8;

/// What Python is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Wait for queued work and what dpctl keeps alive for it.
    Wait,
    /// Run the cyclic collector.
    Collect,
    /// Call the program's callbacks; true if one says that it is worth another try.
    Callbacks,
    /// The request has failed: keep the reasons.
    Explain,
}

/// A request that can't be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// What was asked for.
    pub bytes: u64,
    /// Of which kind.
    pub kind: Kind,
    /// On which device; of host memory, the one device of its context.
    pub device: DeviceId,
    /// Whether the limit stood in the way, and not the runtime.
    pub by_limit: bool,
    /// What the runtime answered, 0 if it was not asked.
    pub code: i32,
}

type OnShortage = fn(Stage, &Shortage) -> bool;
static ON_SHORTAGE: RwLock<Option<OnShortage>> = RwLock::new(None);

thread_local! {
    static INSIDE: Cell<Inside> = const { Cell::new(Inside::Nothing) };
}

/// Who does what only Python can do. Called on a thread that Python knows, with the GIL.
pub fn on_shortage(call: Option<OnShortage>) {
    *ON_SHORTAGE.write().unwrap_or_else(PoisonError::into_inner) = call;
}

/// What a thread is in the middle of.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Inside {
    Nothing,
    Rescue,
    Explanation,
}

/// This thread is inside something while it lives.
struct Entered(Inside);

impl Entered {
    /// None if the thread is inside that already, or further, or about to end.
    fn new(what: Inside) -> Option<Self> {
        let before = INSIDE.try_with(Cell::get).ok().filter(|&before| before < what)?;
        INSIDE.try_with(|inside| inside.set(what)).ok()?;
        Some(Entered(before))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(self.0));
    }
}

/// Whether a request was refused for lack of memory.
pub(super) fn is_one(refused: Refused<UrResult>) -> bool {
    match refused {
        Refused::Limit | Refused::Uncountable => true,
        Refused::Upstream(code) => abi::is_shortage(code),
    }
}

fn ask_python(stage: Stage, shortage: &Shortage) -> bool {
    // Inside our own part of a shim no other call of the program's may be served.
    if fault::is_inside() {
        return false;
    }
    let call = *ON_SHORTAGE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(call) = call else { return false };
    frames::with_gil(|| call(stage, shortage)).unwrap_or(false)
}

/// The runtime has refused a request that does not go through the pool.
#[cold]
pub(super) fn explain(request: &Request, code: UrResult) {
    explain_refusal(request, Refused::Upstream(code));
}

fn explain_refusal(request: &Request, refused: Refused<UrResult>) {
    if is_one(refused)
        && let Some(_entered) = Entered::new(Inside::Explanation)
    {
        ask_python(Stage::Explain, &shortage_of(request, refused));
    }
}

/// Tries to serve a request after all.
#[cold]
pub(super) fn overcome(
    pool: &Pool<Runtime>,
    runtime: &Runtime,
    request: &Request,
    place: Place,
    first: Refused<UrResult>,
    ask: impl Fn() -> Result<usize, Refused<UrResult>>,
) -> Result<usize, Refused<UrResult>> {
    let Some(_entered) = Entered::new(Inside::Rescue) else {
        return overcome_inside(pool, runtime, request, place, first, ask);
    };
    let bytes = request.bytes as u64;
    let mut last = first;
    let mut again = |rescue: Rescue| match ask() {
        Ok(address) => {
            pool.rescued(&place, rescue);
            Some(Ok(address))
        }
        Err(refused) => {
            last = refused;
            (!is_one(refused)).then_some(Err(refused))
        }
    };
    // A request that could not even be served by an empty device needs no waiting.
    let hopeless = is_hopeless(pool, &place, bytes);
    if !hopeless {
        if pool.trim(runtime, Some(account(&place)), bytes, Trim::Rested) > 0
            && let Some(answer) = again(Rescue::Trim)
        {
            return answer;
        }
        let shortage = shortage_of(request, first);
        wait_natively(&place);
        ask_python(Stage::Wait, &shortage);
        // What was freed by then is at rest, whether there is a marker to say so or not. Even if there was nothing to
        // wait for: then it may have ended a moment ago.
        pool.trim(runtime, Some(account(&place)), bytes, Trim::All);
        if let Some(answer) = again(Rescue::Wait) {
            return answer;
        }
        if ask_python(Stage::Collect, &shortage) {
            pool.trim(runtime, Some(account(&place)), bytes, Trim::All);
            if let Some(answer) = again(Rescue::Collect) {
                return answer;
            }
        }
    }
    let shortage = shortage_of(request, first);
    for _ in 0..CALLBACK_ROUNDS {
        if !ask_python(Stage::Callbacks, &shortage) {
            break;
        }
        pool.trim(runtime, Some(account(&place)), bytes, Trim::All);
        if let Some(answer) = again(Rescue::Callback) {
            return answer;
        }
    }
    explain_refusal(request, last);
    Err(last)
}

/// The same on a thread that is inside a stage already, for what that has freed: without Python, and giving nothing back
/// that is not at rest, as such a free may wait for work that needs the GIL.
fn overcome_inside(
    pool: &Pool<Runtime>,
    runtime: &Runtime,
    request: &Request,
    place: Place,
    first: Refused<UrResult>,
    ask: impl Fn() -> Result<usize, Refused<UrResult>>,
) -> Result<usize, Refused<UrResult>> {
    let bytes = request.bytes as u64;
    let mut last = first;
    for rescue in [Rescue::Trim, Rescue::Wait] {
        if is_hopeless(pool, &place, bytes) {
            break;
        }
        if rescue == Rescue::Wait
            && let Some(fence) = guard::fence(place.owner, u64::MAX)
        {
            guard::wait(&fence, runtime::patience());
        }
        if pool.trim(runtime, Some(account(&place)), bytes, Trim::Rested) > 0 {
            match ask() {
                Ok(address) => {
                    pool.rescued(&place, rescue);
                    return Ok(address);
                }
                Err(refused) => last = refused,
            }
        }
    }
    explain_refusal(request, last);
    Err(last)
}

/// Waits for what the queues of the context have been given, unless this thread holds the GIL: then Python waits.
fn wait_natively(place: &Place) {
    if !frames::thread_has_gil()
        && let Some(fence) = guard::fence(place.owner, u64::MAX)
    {
        guard::wait(&fence, PATIENCE);
    }
}

fn is_hopeless(pool: &Pool<Runtime>, place: &Place, bytes: u64) -> bool {
    if place.kind == Kind::Host {
        return false;
    }
    let beyond = |most: Option<u64>| most.is_some_and(|most| bytes > most);
    beyond(pool.limit(place.device))
        || beyond(devices::max_alloc(place.device))
        || beyond(devices::capacity(place.device))
}

fn account(place: &Place) -> DeviceId {
    if place.kind == Kind::Host { DeviceId::NONE } else { place.device }
}

fn shortage_of(request: &Request, refused: Refused<UrResult>) -> Shortage {
    let device = match request.kind {
        Kind::Host => devices::of_context(request.context),
        _ => devices::devices().number(request.device),
    };
    let (by_limit, code) = match refused {
        Refused::Limit => (true, 0),
        Refused::Uncountable => (false, 0),
        Refused::Upstream(code) => (false, code),
    };
    Shortage { bytes: request.bytes as u64, kind: request.kind, device, by_limit, code }
}
