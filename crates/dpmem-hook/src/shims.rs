//! The functions that stand in the runtime's dispatch table while dpmem is in.
//!
//! Each goes through one of the boundary functions at the end, which forward the call exactly once, unchanged, whatever
//! happens on our side, and let no panic out. Only where a pool or a limit is on, [`pool`] may stand between them and
//! the runtime. An allocation is entered after it succeeded, a free before it is
//! forwarded.
//!
//! # Safety of every shim
//! A shim is reached only through the slot of the function it is named after, so its arguments are what that function's
//! specification says, and calling the original with those same arguments is exactly the call the program made. The
//! original is known before the shim gets into the slot ([`crate::install`]).

use dpmem_core::{Direction, Kind, SiteCache};

use crate::abi::{
    BufferProperties, Handle, INVALID_VALUE, MEM_FLAGS_FROM_HOST, Pointer, Rect, SUCCESS, Spill, UrResult,
    WaitList,
};
use crate::clock::ticks;
use crate::devices;
use crate::fetch;
use crate::functions::original;
use crate::launches::launching;
use crate::pool::{self, Request, guard};
use crate::recorder::{self, Asked, Call, Out, Place, Recording};

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

pub(crate) unsafe extern "C" fn buffer_create(
    context: Handle,
    flags: u32,
    bytes: usize,
    properties: Pointer,
    out: *mut Handle,
) -> UrResult {
    let call = forward!(buffer_create(context, flags, bytes, properties, out));
    if flags & MEM_FLAGS_FROM_HOST == 0 {
        return call();
    }
    accepted(call, |recording| {
        // SAFETY: the call was accepted with a flag that says there are properties, which name the host memory.
        let source = unsafe { properties.cast::<BufferProperties>().as_ref() }.map(|p| p.host);
        recording.sent(source.unwrap_or(std::ptr::null_mut()), bytes as u64);
    })
}

pub(crate) unsafe extern "C" fn buffer_read(
    queue: Handle,
    buffer: Handle,
    blocking: bool,
    offset: usize,
    bytes: usize,
    target: Pointer,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call = submitting(
        queue,
        forward!(buffer_read(queue, buffer, blocking, offset, bytes, target, waits, list, event)),
    );
    accepted(call, |recording| enter_copy(recording, Direction::DeviceToHost, bytes as u64))
}

pub(crate) unsafe extern "C" fn buffer_write(
    queue: Handle,
    buffer: Handle,
    blocking: bool,
    offset: usize,
    bytes: usize,
    source: Pointer,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call = submitting(
        queue,
        forward!(buffer_write(queue, buffer, blocking, offset, bytes, source, waits, list, event)),
    );
    accepted(call, |recording| recording.sent(source, bytes as u64))
}

pub(crate) unsafe extern "C" fn buffer_copy(
    queue: Handle,
    source: Handle,
    target: Handle,
    from: usize,
    to: usize,
    bytes: usize,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call =
        submitting(queue, forward!(buffer_copy(queue, source, target, from, to, bytes, waits, list, event)));
    accepted(call, |recording| enter_copy(recording, Direction::DeviceToDevice, bytes as u64))
}

pub(crate) unsafe extern "C" fn buffer_read_rect(
    queue: Handle,
    buffer: Handle,
    blocking: bool,
    at: Rect,
    host_at: Rect,
    region: Rect,
    row: usize,
    slice: usize,
    host_row: usize,
    host_slice: usize,
    target: Pointer,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call = submitting(
        queue,
        forward!(buffer_read_rect(
            queue, buffer, blocking, at, host_at, region, row, slice, host_row, host_slice, target, waits,
            list, event
        )),
    );
    accepted(call, |recording| enter_copy(recording, Direction::DeviceToHost, region.bytes()))
}

pub(crate) unsafe extern "C" fn buffer_write_rect(
    queue: Handle,
    buffer: Handle,
    blocking: bool,
    at: Rect,
    host_at: Rect,
    region: Rect,
    row: usize,
    slice: usize,
    host_row: usize,
    host_slice: usize,
    source: Pointer,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call = submitting(
        queue,
        forward!(buffer_write_rect(
            queue, buffer, blocking, at, host_at, region, row, slice, host_row, host_slice, source, waits,
            list, event
        )),
    );
    accepted(call, |recording| enter_copy(recording, Direction::HostToDevice, region.bytes()))
}

pub(crate) unsafe extern "C" fn buffer_copy_rect(
    queue: Handle,
    source: Handle,
    target: Handle,
    from: Rect,
    to: Rect,
    region: Rect,
    row: usize,
    slice: usize,
    target_row: usize,
    target_slice: usize,
    waits: u32,
    list: WaitList,
    event: *mut Handle,
) -> UrResult {
    let call = submitting(
        queue,
        forward!(buffer_copy_rect(
            queue,
            source,
            target,
            from,
            to,
            region,
            row,
            slice,
            target_row,
            target_slice,
            waits,
            list,
            event
        )),
    );
    accepted(call, |recording| enter_copy(recording, Direction::DeviceToDevice, region.bytes()))
}

pub(crate) unsafe extern "C" fn context_create(
    count: u32,
    list: *const Handle,
    properties: Pointer,
    out: *mut Handle,
) -> UrResult {
    accepted(forward!(context_create(count, list, properties, out)), |_| {
        // SAFETY: the call succeeded, so its list holds `count` devices and its result has been written.
        let (devices, context) = unsafe { (std::slice::from_raw_parts(list, count as usize), *out) };
        devices::created(context as usize, devices);
    })
}

pub(crate) unsafe extern "C" fn context_adopt(
    native: Handle,
    adapter: Handle,
    count: u32,
    list: *const Handle,
    properties: Pointer,
    out: *mut Handle,
) -> UrResult {
    accepted(forward!(context_adopt(native, adapter, count, list, properties, out)), |_| {
        // SAFETY: the call succeeded, so its result has been written.
        devices::forget(unsafe { *out } as usize);
    })
}

pub(crate) unsafe extern "C" fn context_release(context: Handle) -> UrResult {
    let result = before(|| devices::forget(context as usize), forward!(context_release(context)));
    pool::context_released(context);
    result
}

pub(crate) unsafe extern "C" fn queue_create(
    context: Handle,
    device: Handle,
    properties: Pointer,
    out: *mut Handle,
) -> UrResult {
    accepted(forward!(queue_create(context, device, properties, out)), |_| {
        // SAFETY: the call succeeded, so its result has been written.
        let queue = unsafe { *out };
        devices::created(queue as usize, &[device]);
    })
}

pub(crate) unsafe extern "C" fn queue_adopt(
    native: Handle,
    context: Handle,
    device: Handle,
    properties: Pointer,
    out: *mut Handle,
) -> UrResult {
    accepted(forward!(queue_adopt(native, context, device, properties, out)), |_| {
        // SAFETY: the call succeeded, so its result has been written.
        devices::forget(unsafe { *out } as usize);
    })
}

pub(crate) unsafe extern "C" fn queue_finish(queue: Handle) -> UrResult {
    let submitted = guard::submitted(queue);
    let result = forward!(queue_finish(queue))();
    if submitted > 0 && result == SUCCESS {
        guard::finished(queue, submitted);
    }
    result
}

pub(crate) unsafe extern "C" fn queue_release(queue: Handle) -> UrResult {
    guard::forget(queue);
    before(|| devices::forget(queue as usize), forward!(queue_release(queue)))
}

pub(crate) unsafe extern "C" fn device_info(
    device: Handle,
    property: u32,
    bytes: usize,
    value: Pointer,
    answered: *mut usize,
) -> UrResult {
    devices::asked_about(device);
    forward!(device_info(device, property, bytes, value, answered))()
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

// --- the boundary ------------------------------------------------------------------------------------------------

/// Forwards, then enters what came of it.
fn around(
    forward: impl FnOnce() -> UrResult,
    enter: impl FnOnce(&Recording, &mut SiteCache, Call),
) -> UrResult {
    if !recorder::is_on() {
        return forward();
    }
    let start = ticks();
    let result = forward();
    let call = Call { result, start, end: ticks() };
    recorder::enter(|recording, sites| enter(recording, sites, call));
    result
}

fn allocation(
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
fn accepted(forward: impl FnOnce() -> UrResult, enter: impl FnOnce(&Recording)) -> UrResult {
    around(forward, |recording, _, call| {
        if call.result == SUCCESS {
            enter(recording);
        }
    })
}

fn enter_copy(recording: &Recording, direction: Direction, bytes: u64) {
    recording.transferred(direction, bytes);
}

fn free(forward: impl FnOnce() -> UrResult, pointer: Pointer) -> UrResult {
    if !recorder::is_on() {
        return forward();
    }
    let freeing = recorder::enter(|recording, _| recording.freeing(pointer)).flatten();
    let start = ticks();
    let result = forward();
    if let Some(freeing) = freeing {
        let call = Call { result, start, end: ticks() };
        recorder::enter(|recording, _| recording.freed(&freeing, call));
    }
    result
}

/// Forwards a call that submits a command, then tells the guard.
fn submitting(queue: Handle, forward: impl FnOnce() -> UrResult) -> impl FnOnce() -> UrResult {
    move || {
        let result = forward();
        guard::noted(queue);
        result
    }
}

/// Does something of ours, then forwards.
fn before(ours: impl FnOnce(), forward: impl FnOnce() -> UrResult) -> UrResult {
    recorder::enter(|_, _| ours());
    forward()
}
