//! Shims of contexts, queues and devices: who belongs to whom, and when a queue is done.
//!
//! Safety: as at the head of [`super`].

use super::boundary::{accepted, before};
use crate::abi::{Handle, INVALID_VALUE, Pointer, SUCCESS, UrResult};
use crate::devices;
use crate::fault;
use crate::functions::original;
use crate::pool::{self, guard};

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
    let submitted = fault::caught_nested(|| guard::submitted(queue)).flatten();
    let result = forward!(queue_finish(queue))();
    if let Some(submitted) = submitted.filter(|_| result == SUCCESS) {
        fault::caught_nested(|| submitted.finished());
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
