//! Contexts and queues: the CPU runtime's, and whose they really are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::platform::{platform, real, real_devices, simulated, worker};
use super::target::Slot;
use super::{Handle, Status, answer, answer_handles, target};
use crate::foreign::given;

pub(super) const FUNCTIONS: &[(Slot, *const ())] = &[
    (target::CREATE_CONTEXT, create_context as *const ()),
    (target::RELEASE_CONTEXT, release_context as *const ()),
    (target::CONTEXT_INFO, context_info as *const ()),
    (target::CREATE_QUEUE, create_queue as *const ()),
    (target::CREATE_QUEUE_WITH_PROPERTIES, create_queue_with_properties as *const ()),
    (target::RELEASE_QUEUE, release_queue as *const ()),
    (target::QUEUE_INFO, queue_info as *const ()),
    (target::SET_DEFAULT_QUEUE, set_default_queue as *const ()),
];

/// Contexts of simulated devices, and queues, each with the devices it is of.
static OWNERS: Mutex<Option<HashMap<Handle, Vec<Handle>>>> = Mutex::new(None);

struct Owners(MutexGuard<'static, Option<HashMap<Handle, Vec<Handle>>>>);

impl Owners {
    fn lock() -> Self {
        Self(OWNERS.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn map(&mut self) -> &mut HashMap<Handle, Vec<Handle>> {
        self.0.get_or_insert_default()
    }
}

/// The simulated devices of a context or queue; `None` if it is of others.
pub(super) fn devices_of(handle: Handle) -> Option<Vec<Handle>> {
    Owners::lock().map().get(&handle).cloned()
}

extern "C" fn create_context(
    properties: *const isize,
    count: u32,
    devices: *const Handle,
    notify: target::Notify,
    user: usize,
    status: Option<&mut Status>,
) -> Handle {
    let asked = given(devices, count as usize);
    let ours: Vec<Handle> = asked.iter().copied().filter(|device| simulated(*device).is_some()).collect();
    if ours.is_empty() {
        return noted(target().create_context(properties, count, devices, notify, user, status), ours);
    }
    let properties = real_properties(properties);
    let pointer = if properties.is_empty() { std::ptr::null() } else { properties.as_ptr() };
    let devices = real_devices(asked);
    let count = devices.len() as u32;
    noted(target().create_context(pointer, count, devices.as_ptr(), notify, user, status), ours)
}

/// Notes whose a new context or queue is: of no simulated devices, if it is of others.
fn noted(handle: Handle, devices: Vec<Handle>) -> Handle {
    if handle != 0 && !devices.is_empty() {
        Owners::lock().map().insert(handle, devices);
    } else {
        // Two threads that let go at once may both think that they are not the last; then the entry has stayed.
        Owners::lock().map().remove(&handle);
    }
    handle
}

fn of_device(device: Handle) -> Vec<Handle> {
    simulated(device).map(|_| device).into_iter().collect()
}

/// A list of properties that ends with 0, with the CPU runtime's platform in place of ours.
fn real_properties(properties: *const isize) -> Vec<isize> {
    const PLATFORM: isize = 0x1084;
    let mut found = Vec::new();
    if properties.is_null() {
        return found;
    }
    for pair in 0.. {
        // SAFETY: the caller's promise: pairs up to the first key of 0, which is where this ends.
        let (key, value) = unsafe {
            let key = properties.add(2 * pair).read();
            (key, if key == 0 { 0 } else { properties.add(2 * pair + 1).read() })
        };
        found.push(key);
        if key == 0 {
            break;
        }
        let ours = key == PLATFORM && value as usize == platform();
        found.push(worker().filter(|_| ours).map_or(value, |worker| worker.platform as isize));
    }
    found
}

extern "C" fn release_context(context: Handle) -> Status {
    const REFERENCE_COUNT: u32 = 0x1080;
    let mut count = 0u32;
    target().context_info(context, REFERENCE_COUNT, size_of::<u32>(), (&raw mut count).cast(), None);
    if count == 1 {
        Owners::lock().map().remove(&context);
    }
    target().release_context(context)
}

extern "C" fn context_info(
    context: Handle,
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    const DEVICES: u32 = 0x1081;
    const DEVICE_COUNT: u32 = 0x1083;
    match (what, devices_of(context)) {
        (DEVICES, Some(devices)) => answer_handles(size, into, needed, &devices),
        (DEVICE_COUNT, Some(devices)) => answer(size, into, needed, &(devices.len() as u32).to_ne_bytes()),
        _ => target().context_info(context, what, size, into, needed),
    }
}

extern "C" fn create_queue(
    context: Handle,
    device: Handle,
    properties: u64,
    status: Option<&mut Status>,
) -> Handle {
    noted(target().create_queue(context, real(device), properties, status), of_device(device))
}

extern "C" fn create_queue_with_properties(
    context: Handle,
    device: Handle,
    properties: *const u64,
    status: Option<&mut Status>,
) -> Handle {
    noted(target().create_queue_with_properties(context, real(device), properties, status), of_device(device))
}

extern "C" fn release_queue(queue: Handle) -> Status {
    const REFERENCE_COUNT: u32 = 0x1092;
    let mut count = 0u32;
    target().queue_info(queue, REFERENCE_COUNT, size_of::<u32>(), (&raw mut count).cast(), None);
    if count == 1 {
        Owners::lock().map().remove(&queue);
    }
    target().release_queue(queue)
}

extern "C" fn queue_info(
    queue: Handle,
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    const DEVICE: u32 = 0x1091;
    match (what, devices_of(queue)) {
        (DEVICE, Some(devices)) => answer_handles(size, into, needed, &devices),
        _ => target().queue_info(queue, what, size, into, needed),
    }
}

extern "C" fn set_default_queue(context: Handle, device: Handle, queue: Handle) -> Status {
    target().set_default_queue(context, real(device), queue)
}
