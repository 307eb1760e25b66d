//! What is asked of the pool: whether freed blocks are kept, and the limits. It takes effect when the hook is in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dpmem_core::pool::{Policy, Pool};
use dpmem_core::{DeviceId, MAX_DEVICES, Size};

use super::runtime::Runtime;
use super::{POOL, guard, is_on, pool, put_on};
use crate::{devices, fork};

/// Whether the hook is in. Held while what is asked for changes and takes effect, so that the last word is what holds in
/// the end; never taken on the way of a request or a free. Taken before `SETTINGS`.
static IN: Mutex<bool> = Mutex::new(false);
static SETTINGS: Mutex<Settings> = Mutex::new(Settings { caching: false, limit: None });
/// The devices whose limit has been worked out, or set for them alone. Changes under the lock of `SETTINGS`.
static RESOLVED: [AtomicBool; MAX_DEVICES] = [const { AtomicBool::new(false) }; MAX_DEVICES];
/// The devices whose limit has been set for them alone.
static OWN: [AtomicBool; MAX_DEVICES] = [const { AtomicBool::new(false) }; MAX_DEVICES];
/// The devices for which the limit for all is a share of a capacity that is unknown. Goes with `RESOLVED`.
static UNLIMITED: [AtomicBool; MAX_DEVICES] = [const { AtomicBool::new(false) }; MAX_DEVICES];

struct Settings {
    /// What was asked for; the policy follows when the runtime has been found.
    caching: bool,
    /// The limit of devices without one of their own.
    limit: Option<Size>,
}

/// What the pool is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    /// Whether requests go through it: a pool or a limit is on.
    pub on: bool,
    /// Whether freed blocks are kept.
    pub caching: bool,
    /// Whether caching was asked for and is impossible, because in this runtime it can't be seen when memory is at rest.
    pub impossible: bool,
}

fn settings() -> MutexGuard<'static, Settings> {
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Switches the pool on or off and sets the limit of every device that has none of its own. The pool on without a limit
/// leaves limits as they are; off without one, all limits go. Takes effect at once if the hook is in, else when it comes
/// in.
pub fn pool_configure(caching: bool, limit: Option<Size>) {
    change(|settings| {
        settings.caching = caching;
        if limit.is_none() && caching {
            return;
        }
        settings.limit = limit;
        let all = limit.is_none();
        let affected = (0..MAX_DEVICES).filter(|&device| all || !OWN[device].load(Ordering::Acquire));
        for device in affected {
            OWN[device].store(false, Ordering::Release);
            RESOLVED[device].store(false, Ordering::Release);
            if let Some(pool) = POOL.get() {
                pool.put_limit(DeviceId::new(device), None);
            }
        }
    });
}

/// Switches keeping freed blocks on or off and leaves the limits as they are.
pub fn pool_cache(caching: bool) {
    change(|settings| settings.caching = caching);
}

/// The limit of one device from now on; `None` for none. The limit before.
pub fn pool_limit(device: DeviceId, limit: Option<u64>) -> Option<u64> {
    if device == DeviceId::NONE || fork::is_child() {
        return None;
    }
    let hook_is_in = hook_is_in();
    resolve(device);
    OWN[device.index()].store(true, Ordering::Release);
    let before = pool().set_limit(&Runtime::OURS, device, limit);
    apply(*hook_is_in);
    before
}

/// The limit of a device that is in force, the one for all devices included.
pub fn pool_limit_of(device: DeviceId) -> Option<u64> {
    if device == DeviceId::NONE || fork::is_child() {
        return None;
    }
    resolve(device);
    pool().limit(device)
}

/// The devices that the limit for all devices does not hold for, because it is a share of a capacity that is unknown.
pub fn pool_unlimited() -> Vec<DeviceId> {
    if fork::is_child() {
        return Vec::new();
    }
    let is_set = |flags: &[AtomicBool], device: usize| flags[device].load(Ordering::Acquire);
    let unlimited = |&n: &usize| is_set(&UNLIMITED, n) && is_set(&RESOLVED, n) && !is_set(&OWN, n);
    if settings().limit.is_none() {
        Vec::new()
    } else {
        (1..MAX_DEVICES).filter(unlimited).map(DeviceId::new).collect()
    }
}

/// What it is set to.
pub fn pool_status() -> PoolStatus {
    if fork::is_child() {
        return PoolStatus { on: is_on(), caching: false, impossible: false };
    }
    let hook_is_in = hook_is_in();
    let wanted = settings().caching;
    let caching = wanted && pool().policy() == Policy::Caching;
    PoolStatus { on: is_on(), caching, impossible: wanted && is_on() && !caching && *hook_is_in }
}

/// Whether a pool or a limit has been asked for, so that the hook must stay in.
pub(crate) fn is_wanted() -> bool {
    let settings = settings();
    settings.caching || settings.limit.is_some() || POOL.get().is_some_and(has_limit)
}

fn has_limit(pool: &Pool<Runtime>) -> bool {
    (1..MAX_DEVICES).any(|device| pool.limit(DeviceId::new(device)).is_some())
}

/// The hook has come in: what was asked for takes effect.
pub(crate) fn came_in() {
    let mut hook_is_in = hook_is_in();
    *hook_is_in = true;
    apply(true);
}

/// Changes what is asked for, and has it take effect if the hook is in. A forked child takes no lock.
fn change(how: impl FnOnce(&mut Settings)) {
    if fork::is_child() {
        return;
    }
    let hook_is_in = hook_is_in();
    // Made here, with the file in which it is seen from outside, and not within the program's first request.
    pool();
    how(&mut settings());
    apply(*hook_is_in);
}

pub(super) fn hook_is_in() -> MutexGuard<'static, bool> {
    IN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The caller holds `IN`.
fn apply(hook_is_in: bool) {
    if !hook_is_in {
        return;
    }
    let caching = settings().caching && guard::is_possible();
    if caching {
        guard::switch(true);
        pool().set_policy(&Runtime::OURS, Policy::Caching);
    } else {
        // The other way round: nothing is to be kept while commands are not counted.
        pool().set_policy(&Runtime::OURS, Policy::Direct);
        guard::switch(false);
    }
    put_on(is_wanted());
}

/// Works the limit for all devices out for one.
pub(super) fn resolve(device: DeviceId) {
    let resolved = &RESOLVED[device.index()];
    if resolved.load(Ordering::Acquire) {
        return;
    }
    let settings = settings();
    if resolved.load(Ordering::Acquire) {
        return;
    }
    if let Some(size) = settings.limit {
        let capacity = match size {
            Size::Bytes(_) => Some(0),
            Size::Share(_) => devices::capacity(device),
        };
        UNLIMITED[device.index()].store(capacity.is_none(), Ordering::Release);
        pool().put_limit(device, capacity.map(|capacity| size.of(capacity)));
    }
    resolved.store(true, Ordering::Release);
    // A free may wait for work, which may wait for whoever wants the settings.
    drop(settings);
    pool().fit(&Runtime::OURS, device);
}
