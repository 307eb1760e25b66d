//! The functions that stand in the runtime's dispatch table while dpmem is in.
//!
//! Each goes through one of the functions in [`boundary`], which forward the call exactly once, unchanged, whatever
//! happens on our side, and let no panic out. Only where a pool or a limit is on, [`pool`] may stand between them and
//! the runtime. An allocation is entered after it succeeded, a free before it is
//! forwarded.
//!
//! # Safety of every shim
//! A shim is reached only through the slot of the function it is named after, so its arguments are what that function's
//! specification says, and calling the original with those same arguments is exactly the call the program made. The
//! original is known before the shim gets into the slot ([`crate::install`]).

use dpmem_core::Kind;

use crate::abi::{Handle, INVALID_VALUE, Pointer, SUCCESS, Spill, UrResult, WaitList};
use crate::functions::original;
use crate::launches::launching;
use crate::pool::{self, Request};
use crate::recorder::{Asked, Out, Place};
use crate::{devices, fetch};

/// Calls the original with the shim's own arguments.
macro_rules! forward {
    ($name:ident($($argument:expr),*)) => {
        || match original::$name() {
            // SAFETY: see the head of this file.
            Some(original) => unsafe { original($($argument),*) },
            None => INVALID_VALUE,
        }
    };
}

mod boundary;
mod buffers;
mod objects;

pub(crate) use buffers::*;
pub(crate) use objects::*;

use boundary::{accepted, allocation, around, free, submitting};

pub(crate) unsafe extern "C" fn usm_host_alloc(
    context: Handle,
    descriptor: Pointer,
    pool: Handle,
    bytes: usize,
    out: Out,
) -> UrResult {
    let call = forward!(usm_host_alloc(context, descriptor, pool, bytes, out));
    let request =
        Request { kind: Kind::Host, context, device: std::ptr::null_mut(), descriptor, pool, bytes, out };
    allocation(|| pool::allocate(request, call), Kind::Host, Place::Context(context), bytes, out)
}

pub(crate) unsafe extern "C" fn usm_device_alloc(
    context: Handle,
    device: Handle,
    descriptor: Pointer,
    pool: Handle,
    bytes: usize,
    out: Out,
) -> UrResult {
    let call = forward!(usm_device_alloc(context, device, descriptor, pool, bytes, out));
    let request = Request { kind: Kind::Device, context, device, descriptor, pool, bytes, out };
    allocation(|| pool::allocate(request, call), Kind::Device, Place::Device(device), bytes, out)
}

pub(crate) unsafe extern "C" fn usm_shared_alloc(
    context: Handle,
    device: Handle,
    descriptor: Pointer,
    pool: Handle,
    bytes: usize,
    out: Out,
) -> UrResult {
    let call = forward!(usm_shared_alloc(context, device, descriptor, pool, bytes, out));
    let request = Request { kind: Kind::Shared, context, device, descriptor, pool, bytes, out };
    allocation(|| pool::allocate(request, call), Kind::Shared, Place::Device(device), bytes, out)
}

pub(crate) unsafe extern "C" fn usm_free(context: Handle, pointer: Pointer) -> UrResult {
    let call = forward!(usm_free(context, pointer));
    free(|| pool::free(context, pointer, call), pointer)
}

pub(crate) unsafe extern "C" fn usm_alloc_info(
    context: Handle,
    pointer: Pointer,
    property: u32,
    bytes: usize,
    value: Pointer,
    answered: *mut usize,
) -> UrResult {
    devices::asked_about_block(context, pointer);
    let call = forward!(usm_alloc_info(context, pointer, property, bytes, value, answered));
    pool::alloc_info(context, pointer, property, bytes, value, answered).unwrap_or_else(call)
}

pub(crate) unsafe extern "C" fn usm_pitched_alloc(
    context: Handle,
    device: Handle,
    descriptor: Pointer,
    pool: Handle,
    width: usize,
    height: usize,
    element: usize,
    out: Out,
    pitch: *mut usize,
) -> UrResult {
    let call =
        forward!(usm_pitched_alloc(context, device, descriptor, pool, width, height, element, out, pitch));
    around(call, |recording, sites, call| {
        // SAFETY: a call that succeeded has written the row pitch; before that it is not read.
        let row = if call.result == SUCCESS { unsafe { pitch.as_ref() } } else { None };
        let bytes = row.copied().unwrap_or(width).saturating_mul(height);
        let asked = Asked { kind: Kind::Device, device: Place::Device(device).device(), bytes };
        recording.allocated(sites, asked, out, call);
    })
}

pub(crate) unsafe extern "C" fn enqueue_host_alloc(
    queue: Handle,
    pool: Handle,
    bytes: usize,
    properties: Pointer,
    waits: u32,
    list: WaitList,
    out: Out,
    event: *mut Handle,
) -> UrResult {
    let call = forward!(enqueue_host_alloc(queue, pool, bytes, properties, waits, list, out, event));
    allocation(call, Kind::Host, Place::Queue(queue), bytes, out)
}

pub(crate) unsafe extern "C" fn enqueue_device_alloc(
    queue: Handle,
    pool: Handle,
    bytes: usize,
    properties: Pointer,
    waits: u32,
    list: WaitList,
    out: Out,
    event: *mut Handle,
) -> UrResult {
    let call = forward!(enqueue_device_alloc(queue, pool, bytes, properties, waits, list, out, event));
    allocation(call, Kind::Device, Place::Queue(queue), bytes, out)
}

pub(crate) unsafe extern "C" fn enqueue_shared_alloc(
    queue: Handle,
    pool: Handle,
    bytes: usize,
    properties: Pointer,
    waits: u32,
    list: WaitList,
    out: Out,
    event: *mut Handle,
) -> UrResult {
    let call = forward!(enqueue_shared_alloc(queue, pool, bytes, properties, waits, list, out, event));
    allocation(call, Kind::Shared, Place::Queue(queue), bytes, out)
}

pub(crate) unsafe extern "C" fn enqueue_free(
    queue: Handle,
    pool: Handle,
    pointer: Pointer,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    free(forward!(enqueue_free(queue, pool, pointer, waits, list, event)), pointer)
}

pub(crate) unsafe extern "C" fn enqueue_memcpy(
    queue: Handle,
    blocking: bool,
    target: Pointer,
    source: Pointer,
    bytes: usize,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call = submitting(
        queue,
        forward!(enqueue_memcpy(queue, blocking, target, source, bytes, waits, list, event)),
    );
    accepted(call, |recording| {
        // SAFETY: the call succeeded, so it has written the event if its caller asked for one.
        let event = unsafe { event.as_ref() }.copied();
        recording.copied(queue, target, source, bytes as u64, event);
    })
}

pub(crate) unsafe extern "C" fn event_wait(count: u32, list: WaitList) -> UrResult {
    // SAFETY: the caller names `count` events at `list`.
    let listed = |event| (0..count as usize).any(|n| unsafe { *list.add(n) } as usize == event);
    let fetch = fetch::awaited(listed);
    let call = forward!(event_wait(count, list));
    match fetch {
        Some(fetch) => accepted(call, |recording| recording.fetched(&fetch)),
        None => call(),
    }
}

pub(crate) unsafe extern "C" fn enqueue_memcpy_2d(
    queue: Handle,
    blocking: bool,
    target: Pointer,
    target_pitch: usize,
    source: Pointer,
    source_pitch: usize,
    width: usize,
    height: usize,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call = submitting(
        queue,
        forward!(enqueue_memcpy_2d(
            queue,
            blocking,
            target,
            target_pitch,
            source,
            source_pitch,
            width,
            height,
            waits,
            list,
            event
        )),
    );
    accepted(call, |recording| {
        recording.copied(queue, target, source, (width as u64).saturating_mul(height as u64), None)
    })
}

pub(crate) unsafe extern "C" fn context_memcpy(
    context: Handle,
    target: Pointer,
    source: Pointer,
    bytes: usize,
) -> UrResult {
    let call = forward!(context_memcpy(context, target, source, bytes));
    // No queue belongs to this copy; an address that the ledger doesn't know counts as the host's.
    let queue = std::ptr::null_mut();
    accepted(call, |recording| recording.copied(queue, target, source, bytes as u64, None))
}

pub(crate) unsafe extern "C" fn enqueue_fill(
    queue: Handle,
    target: Pointer,
    pattern_bytes: usize,
    pattern: Pointer,
    bytes: usize,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call = submitting(
        queue,
        forward!(enqueue_fill(queue, target, pattern_bytes, pattern, bytes, waits, list, event)),
    );
    accepted(call, |recording| recording.filled(bytes as u64))
}

/// Shims of functions that submit a command and whose arguments are nobody's business here.
macro_rules! submitting {
    ($before:ident: $($name:ident)*) => { $(
        pub(crate) unsafe extern "C" fn $name(
            queue: Handle,
            second: usize,
            third: usize,
            fourth: usize,
            fifth: usize,
            sixth: usize,
            rest: Spill,
        ) -> UrResult {
            $before();
            submitting(queue, forward!($name(queue, second, third, fourth, fifth, sixth, rest)))()
        }
    )* };
}

submitting! { launching:
    kernel_launch kernel_launch_with_arguments kernel_launch_custom kernel_launch_cooperative
}

submitting! { ignore:
    command_buffer_enqueue graph_enqueue native_command host_task enqueue_fill_2d enqueue_prefetch enqueue_advise
    global_read global_write
}

fn ignore() {}
