//! The pool and the limits, as the shims meet them.
//!
//! While it is on, requests for USM go through [`allocate`] and frees through [`free`]. What has flags is counted and
//! never kept; what is more special (a pool of the runtime's own, queue-ordered calls) goes to the runtime as it is. While
//! it is off, both only forward. The decisions are `dpmem-core`'s; here are the runtime as its upstream ([`runtime`]), the
//! knowledge of when freed memory is at rest ([`guard`]), what is asked for ([`settings`]), and the way out of a shortage
//! ([`shortage`]).
//!
//! If anything in here panics, the program's request is forwarded and nothing is cached any more. Nor is it once the
//! guard is lost.

pub(crate) mod guard;
mod pages;
mod runtime;
mod settings;
mod shortage;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use dpmem_core::pool::{Freed, Known, Place, Policy, Pool, PoolReading, Refused, Upstream};
use dpmem_core::{DeviceId, Kind, UsageMap};
use runtime::Runtime;
pub use runtime::poison;
pub use settings::{
    PoolStatus, pool_cache, pool_configure, pool_limit, pool_limit_of, pool_status, pool_unlimited,
};
pub(crate) use settings::{came_in, is_wanted};
use settings::{hook_is_in, resolve};
pub use shortage::{Answer, Shortage, Stage, on_shortage};

use crate::abi::{
    self, Handle, INVALID_VALUE, OUT_OF_DEVICE_MEMORY, Pointer, SUCCESS, USM_DEVICE_DESCRIPTOR,
    USM_HOST_DESCRIPTOR, UrResult, UsmDescriptor,
};
use crate::functions::{Function, original};
use crate::recorder::Out;
use crate::{devices, fault, fork, published};

/// Whether requests go through the pool.
static ON: AtomicBool = AtomicBool::new(false);
/// Whether addresses may be the pool's: from its first block on.
static USED: AtomicBool = AtomicBool::new(false);
static POOL: OnceLock<Pool<Runtime>> = OnceLock::new();

/// A request of the program's for USM.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) context: Handle,
    pub(crate) device: Handle,
    pub(crate) descriptor: Pointer,
    /// A pool of the runtime's own that the memory is to come from.
    pub(crate) pool: Handle,
    pub(crate) bytes: usize,
    pub(crate) out: Out,
}

fn pool() -> &'static Pool<Runtime> {
    POOL.get_or_init(|| Pool::with_rows(Policy::Direct, published::made().map(UsageMap::reserves)))
}

/// Gives cached memory back; the bytes that went.
pub fn pool_empty() -> u64 {
    if fork::is_child() { 0 } else { pool().empty(&Runtime::OURS) }
}

/// The numbers of a device, or the sums over all.
pub fn pool_reading(device: Option<DeviceId>) -> PoolReading {
    if fork::is_child() {
        return PoolReading::default();
    }
    let Some(device) = device else { return pool().total() };
    // A limit shows from the moment on that it is set.
    if device != DeviceId::NONE {
        resolve(device);
    }
    pool().reading(device)
}

/// The sums over all devices, of memory that limits count, and the numbers of host memory, which they don't.
pub fn pool_readings() -> (PoolReading, PoolReading) {
    if fork::is_child() {
        return Default::default();
    }
    (pool().total_on_devices(), pool().reading(DeviceId::NONE))
}

/// Starts the peak of what is reserved on a device anew.
pub fn pool_reset_peak(device: DeviceId) {
    if !fork::is_child() {
        pool().reset_peak(device);
    }
}

/// Another recording begins, and with it the peaks that its report tells.
pub(crate) fn recording_begins() {
    if let Some(pool) = POOL.get().filter(|_| !fork::is_child()) {
        pool.recording_begins();
    }
}

/// The recording has ended; requests may go on.
pub(crate) fn recording_ends() {
    if let Some(pool) = POOL.get().filter(|_| !fork::is_child()) {
        pool.recording_ends();
    }
}

/// Takes in what the program has already: address, bytes, kind and device of each block. `still` says whether a block
/// is there now, asked after it was entered.
pub fn pool_adopt(blocks: &[(usize, u64, Kind, DeviceId)], still: impl Fn(usize) -> bool) {
    for &(address, bytes, kind, device) in blocks {
        if pool().known(address).is_some() {
            continue;
        }
        USED.store(true, Ordering::Release);
        let place = Place { owner: 0, handle: 0, device, kind, align: 0 };
        pool().adopt(place, address, bytes);
        if !still(address) {
            pool().disown(address);
        }
    }
}

/// Whether requests go through the pool.
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The hook is about to go: everything goes back, and nothing comes through here any more.
pub(crate) fn leave() {
    let mut hook_is_in = hook_is_in();
    *hook_is_in = false;
    switch_off();
    if let Some(pool) = POOL.get() {
        pool.close(&Runtime::OURS);
    }
    USED.store(false, Ordering::Release);
}

/// Safe in a forked child: it only stores to atomics. What is freed is not kept any more before commands are no longer
/// counted.
pub(crate) fn switch_off() {
    put_on(false);
    if let Some(pool) = POOL.get() {
        pool.stop_caching();
    }
    guard::switch(false);
}

/// In a forked child no lock of ours is taken again.
pub(crate) fn leave_child() {
    switch_off();
    USED.store(false, Ordering::Release);
}

fn put_on(on: bool) {
    ON.store(on, Ordering::Release);
    // A forked child shares the map with its parent, of whom it tells.
    if let Some(map) = published::map().filter(|_| !fork::is_child()) {
        map.set_pooling(on);
    }
}

/// Serves a request, or has `forward` do so where it is none of the pool's.
pub(crate) fn allocate(request: Request, forward: impl FnOnce() -> UrResult) -> UrResult {
    if !is_on() || request.bytes == 0 || request.out.is_null() || !request.pool.is_null() {
        let result = forward();
        if abi::is_shortage(result) && request.bytes > 0 {
            fault::caught_nested(|| shortage::explain(&request, result));
        }
        return result;
    }
    if guard::is_lost() {
        give_up_caching();
    }
    match fault::caught_nested(|| serve(&request)) {
        Some(Ok(address)) => {
            // SAFETY: the program gave this place for the result, and it is not null.
            unsafe { *request.out = address as Pointer };
            SUCCESS
        }
        Some(Err(refusal)) => refusal,
        None => {
            switch_off();
            forward()
        }
    }
}

/// It can't be known any more when memory is at rest. What is cached goes back.
#[cold]
fn give_up_caching() {
    fault::caught_nested(|| {
        if pool().policy() == Policy::Caching {
            pool().set_policy(&Runtime::OURS, Policy::Direct);
        }
    });
}

fn serve(request: &Request) -> Result<usize, UrResult> {
    let (pool, runtime) = (pool(), Runtime { descriptor: request.descriptor, context: std::ptr::null_mut() });
    let place = place_of(request);
    if !USED.load(Ordering::Relaxed) {
        USED.store(true, Ordering::Release);
    }
    if place.device != DeviceId::NONE {
        resolve(place.device);
    }
    let bytes = request.bytes as u64;
    let plain = is_plain(request);
    let ask = || {
        let answer = match plain {
            true => pool.allocate(&runtime, place, bytes),
            false => pool.allocate_uncached(&runtime, place, bytes),
        };
        match answer {
            // The runtime says what is wrong with it.
            Err(Refused::Uncountable) => runtime.take(&place, bytes).map_err(Refused::Upstream),
            answer => answer,
        }
    };
    let answer = ask().or_else(|refused| match shortage::is_one(refused) {
        true => shortage::overcome(pool, &runtime, request, place, refused, ask),
        false => Err(refused),
    });
    answer.map_err(|refused| match refused {
        Refused::Limit | Refused::Uncountable => OUT_OF_DEVICE_MEMORY,
        Refused::Upstream(refusal) => refusal,
    })
}

fn place_of(request: &Request) -> Place {
    let Request { kind, context, device, descriptor, .. } = *request;
    let (device_id, handle) = match kind {
        Kind::Host => (DeviceId::NONE, 0),
        _ => (devices::devices().number(device), device as usize),
    };
    // SAFETY: a descriptor that is not null is the program's, of this form.
    let align =
        unsafe { descriptor.cast::<UsmDescriptor>().as_ref() }.map_or(0, |descriptor| descriptor.align);
    Place { owner: context as usize, handle, device: device_id, kind, align }
}

/// Whether memory that is described so is like any other of its kind.
fn is_plain(request: &Request) -> bool {
    // SAFETY: a descriptor that is not null is the program's, of this form.
    let Some(descriptor) = (unsafe { request.descriptor.cast::<UsmDescriptor>().as_ref() }) else {
        return true;
    };
    let mut next = descriptor.next;
    for _ in 0..4 {
        // SAFETY: what hangs on a descriptor begins with its type and what hangs on it in turn; only of types that have
        // flags are these looked at.
        let Some(extension) = (unsafe { next.as_ref() }) else { return descriptor.hints == 0 };
        if !matches!(extension.structure, USM_HOST_DESCRIPTOR | USM_DEVICE_DESCRIPTOR) || extension.flags != 0
        {
            return false;
        }
        next = extension.next;
    }
    false
}

/// Takes a block back, or has `forward` do so where it is none of the pool's.
pub(crate) fn free(context: Handle, pointer: Pointer, forward: impl FnOnce() -> UrResult) -> UrResult {
    if !USED.load(Ordering::Acquire) || pointer.is_null() {
        return forward();
    }
    let runtime = Runtime { context, ..Runtime::OURS };
    match fault::caught_nested(|| pool().free(&runtime, pointer as usize)) {
        Some(Freed::Done) => SUCCESS,
        Some(Freed::Unknown) => forward(),
        Some(Freed::Twice) => INVALID_VALUE,
        Some(Freed::Refused(refusal)) => refusal,
        // It is not known how far it came. A lost block is better than one that is freed twice.
        None => {
            switch_off();
            SUCCESS
        }
    }
}

/// A context has been released, perhaps for the last time but for us.
pub(crate) fn context_released(context: Handle) {
    if USED.load(Ordering::Acquire) {
        fault::caught_nested(|| pool().owner_released(&Runtime::OURS, context as usize));
    }
}

/// Puts right what the runtime says about an address of the pool's: a block is as large as the program asked, and a
/// freed one is none.
pub(crate) fn alloc_info(
    context: Handle,
    pointer: Pointer,
    property: u32,
    bytes: usize,
    value: Pointer,
    answered: *mut usize,
) -> Option<UrResult> {
    if !USED.load(Ordering::Acquire) {
        return None;
    }
    let known = fault::caught_nested(|| {
        let around = || pool().known_around(base_of(context, pointer)?, pointer as usize);
        pool().known(pointer as usize).or_else(around)
    })
    .flatten()?;
    let (size, word) = match (known, property) {
        (Known::InUse(asked), abi::USM_ALLOC_INFO_SIZE) => (size_of::<usize>(), asked as usize),
        (Known::Free, abi::USM_ALLOC_INFO_TYPE) => (size_of::<u32>(), abi::USM_TYPE_UNKNOWN as usize),
        (Known::Free, abi::USM_ALLOC_INFO_BASE | abi::USM_ALLOC_INFO_SIZE) => (size_of::<usize>(), 0),
        _ => return None,
    };
    // SAFETY: the program gave room of `bytes` at `value` and a place for the size of the answer, or null for what it
    // does not want; the answer is little-endian, so the low bytes of the word are the 32-bit number.
    unsafe {
        if let Some(answered) = answered.as_mut() {
            *answered = size;
        }
        if !value.is_null() {
            if bytes < size {
                return Some(abi::INVALID_SIZE);
            }
            std::ptr::copy_nonoverlapping((&raw const word).cast::<u8>(), value.cast::<u8>(), size);
        }
    }
    Some(SUCCESS)
}

fn base_of(context: Handle, pointer: Pointer) -> Option<usize> {
    let info = original::usm_alloc_info()?;
    let mut base = 0usize;
    let into = (&raw mut base).cast();
    // SAFETY: the context is in use by the call being answered; any address may be asked about, and the answer is one
    // pointer.
    let result = unsafe {
        info(context, pointer, abi::USM_ALLOC_INFO_BASE, size_of::<usize>(), into, std::ptr::null_mut())
    };
    (result == SUCCESS && base != 0).then_some(base)
}

/// For tests and benchmarks: what a function of the runtime is called through, and the function itself.
pub fn entry(name: &str) -> Option<(usize, usize)> {
    let function = Function::ALL.iter().find(|function| function.name() == name)?;
    Some((function.shim()?, function.original_address())).filter(|&(_, original)| original != 0)
}

/// For tests and benchmarks: context and device of each place that blocks have come from, as the runtime has them.
pub fn places() -> Vec<(usize, usize, Kind)> {
    POOL.get().map_or_else(Vec::new, |pool| {
        pool.places().into_iter().map(|place| (place.owner, place.handle, place.kind)).collect()
    })
}

/// What a device can hold, and the largest block it gives, as the runtime says.
pub fn device_room(device: DeviceId) -> (Option<u64>, Option<u64>) {
    (devices::capacity(device), devices::max_alloc(device))
}
