//! Shims of buffers: copies through them are counted, the buffers themselves are not.
//!
//! Safety: as at the head of [`super`].

use dpmem_core::Direction;

use super::boundary::{accepted, enter_copy, submitting};
use crate::abi::{
    BufferProperties, Handle, INVALID_VALUE, MEM_FLAGS_FROM_HOST, Pointer, Rect, UrResult, WaitList,
};
use crate::functions::original;

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
