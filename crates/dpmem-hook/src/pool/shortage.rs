//! The way out of a shortage: what is tried, in order, before a request fails; and who is told when it does.
//!
//! The stages: give cached blocks at rest back; wait for work that is queued, also for what dpctl keeps alive for it;
//! run Python's cyclic collector; call the program's callbacks. After each the request is tried again, and what helped
//! is counted. Only for requests that failed for lack of memory ([`is_one`]): no stage helps one that is wrong in itself.
//! Queued work is waited for as long as there is any, because it ends; [`PATIENCE`] is for work that doesn't.
//!
//! This is the one place on the hook path that may enter Python, and then only: on a thread that Python knows; with no
//! lock of ours held (the shim has not entered the recording yet, and the pool has returned); and every wait is bounded.
//! Waits of our own let the GIL be: a thread that holds it goes through Python to wait, which releases it.
//!
//! No stage begins inside another: a request that fails inside a callback, or inside a destructor that the collector
//! runs, gets what is cached and at rest ([`Way::out_inside`]), and otherwise fails at once and is explained. One that
//! fails inside an explanation just fails.
//!
//! What a signal handler raises meanwhile ends the matter: the request fails with no stage more, and Python's side has
//! the exception raised. So that it can, no wait of ours is longer than [`SLICE`] without Python being asked; the
//! runtime's, in a free of a block that is in use, is as long as it is.

use std::cell::Cell;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use dpmem_core::pool::{Place, Pool, Refused, Rescue, Trim};
use dpmem_core::{DeviceId, Kind};

use super::runtime::Runtime;
use super::{Request, guard};
use crate::abi::{self, UrResult};
use crate::clock::Wait;
use crate::{devices, fault, frames};

/// How long queued work is waited for on this side: in all, until cached blocks that are not at rest go back as well
/// (which waits for the work that uses them, where handlers can't run), and at a time.
const PATIENCE: Duration = Duration::from_secs(3600);
const PATIENCE_WITH_CACHED: Duration = Duration::from_secs(1);
const SLICE: Duration = Duration::from_millis(50);
/// How often callbacks that say that they have freed something are believed.
const CALLBACK_ROUNDS: usize = 8;

/// What Python is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A way out begins to be looked for.
    Begin,
    /// Wait for the work that dpctl knows of and what it keeps alive for that, but no longer than there is no room; true
    /// if there was some left.
    Wait,
    /// Wait for the work in any queue that the program has; true if there was some.
    Search,
    /// Run the cyclic collector.
    Collect,
    /// Call the program's callbacks; true if one says that it is worth another try.
    Callbacks,
    /// The request has failed: keep the reasons.
    Explain,
    /// Let signal handlers run.
    Interrupt,
}

/// What Python's side answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing came of it.
    No,
    /// Another try is worthwhile.
    Yes,
    /// An exception of the program's is under way and will be raised once the request has failed.
    Interrupted,
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

type OnShortage = fn(Stage, &Shortage) -> Answer;
static ON_SHORTAGE: RwLock<Option<OnShortage>> = RwLock::new(None);

thread_local! {
    static INSIDE: Cell<Inside> = const { Cell::new(Inside::Nothing) };
}

/// Who does what only Python can do. Called on a thread that Python knows, with the GIL.
pub fn on_shortage(call: OnShortage) {
    *ON_SHORTAGE.write().unwrap_or_else(PoisonError::into_inner) = Some(call);
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

fn ask_python(stage: Stage, shortage: &Shortage) -> Answer {
    // Inside our own part of a shim no other call of the program's may be served.
    if fault::is_inside() {
        return Answer::No;
    }
    let call = *ON_SHORTAGE.read().unwrap_or_else(PoisonError::into_inner);
    let Some(call) = call else { return Answer::No };
    frames::with_gil(|| call(stage, shortage)).unwrap_or(Answer::No)
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
    let entered = Entered::new(Inside::Rescue);
    let shortage = shortage_of(request, first);
    let deadline = Instant::now() + PATIENCE;
    let mut way = Way { pool, runtime, place, shortage, ask, last: first, deadline, wait: Wait::begin() };
    let end = if entered.is_some() { way.out() } else { way.out_inside() };
    match end {
        Break(End::Served(address)) => return Ok(address),
        Break(End::Interrupted) => {}
        Break(End::Refused) | Continue(()) => explain_refusal(request, way.last),
    }
    Err(way.last)
}

/// How the search for a way out ended.
enum End {
    Served(usize),
    Interrupted,
    /// For something else than lack of memory.
    Refused,
}

struct Way<'a, F> {
    pool: &'a Pool<Runtime>,
    runtime: &'a Runtime,
    place: Place,
    shortage: Shortage,
    ask: F,
    last: Refused<UrResult>,
    /// Waiting ends then.
    deadline: Instant,
    /// All of this but the last try, which may be the one that the runtime serves.
    wait: Wait,
}

impl<F: Fn() -> Result<usize, Refused<UrResult>>> Way<'_, F> {
    fn out(&mut self) -> ControlFlow<End> {
        // A request that could not even be served by an empty device needs no waiting.
        if !is_hopeless(self.pool, &self.place, self.shortage.bytes) {
            if self.trim(Trim::Rested) > 0 {
                self.again(Rescue::Trim)?;
            }
            self.python(Stage::Begin)?;
            self.wait(Rescue::Wait)?;
            if self.python(Stage::Search)? {
                self.reuse_or_trim(Rescue::Wait)?;
            }
            if self.python(Stage::Collect)? {
                self.wait(Rescue::Collect)?;
            }
        }
        for _ in 0..CALLBACK_ROUNDS {
            if !self.python(Stage::Callbacks)? {
                break;
            }
            self.reuse_or_trim(Rescue::Callback)?;
        }
        Continue(())
    }

    /// The same on a thread that is inside a stage already, for what that has freed: without Python, and giving nothing
    /// back that is not at rest, as such a free may wait for work that needs the GIL.
    fn out_inside(&mut self) -> ControlFlow<End> {
        if is_hopeless(self.pool, &self.place, self.shortage.bytes) {
            return Continue(());
        }
        for rescue in [Rescue::Trim, Rescue::Wait] {
            if rescue == Rescue::Wait
                && let Some(fence) = guard::fence(self.place.owner, u64::MAX)
            {
                guard::wait(&fence, SLICE);
            }
            if self.trim(Trim::Rested) > 0 {
                self.again(rescue)?;
            }
        }
        Continue(())
    }

    /// Waits until the request can be served or no work is left. What was freed by then is at rest, whether there is a
    /// marker to say so or not. Another try is made even if there was nothing to wait for: it may have ended just now.
    fn wait(&mut self, rescue: Rescue) -> ControlFlow<End> {
        self.wait_natively(rescue)?;
        loop {
            let is_work_left = self.python(Stage::Wait)?;
            self.reuse_or_trim(rescue)?;
            if !is_work_left || Instant::now() >= self.deadline {
                return Continue(());
            }
        }
    }

    /// Waits for what the queues of the context have been given, unless this thread holds the GIL: then Python waits.
    fn wait_natively(&mut self, rescue: Rescue) -> ControlFlow<End> {
        if frames::thread_has_gil() {
            return Continue(());
        }
        let Some(fence) = guard::fence(self.place.owner, u64::MAX) else { return Continue(()) };
        let begun = Instant::now();
        let mut spared = true;
        while !guard::wait(&fence, SLICE) && !guard::is_lost() && Instant::now() < self.deadline {
            // The work of another queue of the context may have nothing to do with what is cached.
            let spare = begun.elapsed() < PATIENCE_WITH_CACHED;
            let went = self.trim(if spare { Trim::Rested } else { Trim::All });
            if went > 0 || spared != spare {
                self.again(rescue)?;
            }
            spared = spare;
            self.python(Stage::Interrupt)?;
        }
        Continue(())
    }

    /// What has come to rest serves the request, if it can, before it is given back to make room.
    fn reuse_or_trim(&mut self, rescue: Rescue) -> ControlFlow<End> {
        self.again(rescue)?;
        if self.trim(Trim::All) > 0 {
            self.again(rescue)?;
        }
        Continue(())
    }

    fn trim(&self, which: Trim) -> u64 {
        self.pool.trim(self.runtime, Some(account(&self.place)), self.shortage.bytes, which)
    }

    fn again(&mut self, rescue: Rescue) -> ControlFlow<End> {
        self.wait.until_now();
        match (self.ask)() {
            Ok(address) => {
                self.pool.rescued(&self.place, rescue);
                Break(End::Served(address))
            }
            Err(refused) => {
                self.last = refused;
                (self.shortage.by_limit, self.shortage.code) = reason(refused);
                if is_one(refused) { Continue(()) } else { Break(End::Refused) }
            }
        }
    }

    fn python(&self, stage: Stage) -> ControlFlow<End, bool> {
        match ask_python(stage, &self.shortage) {
            Answer::Interrupted => Break(End::Interrupted),
            answer => Continue(answer == Answer::Yes),
        }
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

/// Whether it was by the limit, and what the runtime answered.
fn reason(refused: Refused<UrResult>) -> (bool, UrResult) {
    match refused {
        Refused::Limit => (true, 0),
        Refused::Uncountable => (false, 0),
        Refused::Upstream(code) => (false, code),
    }
}

fn shortage_of(request: &Request, refused: Refused<UrResult>) -> Shortage {
    let device = match request.kind {
        Kind::Host => devices::of_context(request.context),
        _ => devices::devices().number(request.device),
    };
    let (by_limit, code) = reason(refused);
    Shortage { bytes: request.bytes as u64, kind: request.kind, device, by_limit, code }
}
