//! The platform, its devices, and what they answer.

use std::sync::OnceLock;

use super::target::Slot;
use super::{DEVICE_NOT_FOUND, DEVICE_PARTITION_FAILED, Handle, SUCCESS, Status, answer, list, target};
use crate::device::{Device, IP_VERSION, by_address, devices};

const TYPE_DEFAULT: u64 = 1;
const TYPE_CPU: u64 = 1 << 1;
const TYPE_GPU: u64 = 1 << 2;
const TYPE_ALL: u64 = 0xFFFF_FFFF;
const INTEL: u32 = 0x8086;
/// Access and atomic access.
const USM_CAPABLE: u64 = 0b11;

pub(super) const FUNCTIONS: &[(Slot, *const ())] = &[
    (target::PLATFORM_IDS, platform_ids as *const ()),
    (target::PLATFORM_INFO, platform_info as *const ()),
    (target::DEVICE_IDS, device_ids as *const ()),
    (target::DEVICE_INFO, device_info as *const ()),
    (target::CREATE_SUB_DEVICES, create_sub_devices as *const ()),
    (target::RETAIN_DEVICE, retain_device as *const ()),
    (target::RELEASE_DEVICE, release_device as *const ()),
    (target::DEVICE_AND_HOST_TIMER, device_and_host_timer as *const ()),
    (target::HOST_TIMER, host_timer as *const ()),
];

/// The address of this is the platform's handle. While a layer is there, the loader looks into no handle itself.
static PLATFORM: [usize; 2] = [0; 2];

pub(super) fn platform() -> Handle {
    PLATFORM.as_ptr().addr()
}

/// The CPU runtime that does the work.
#[derive(Clone, Copy)]
pub(super) struct Worker {
    pub platform: Handle,
    pub device: Handle,
}

/// The first platform with a CPU device; `None` where there is none, and then there are no simulated devices.
pub(super) fn worker() -> Option<Worker> {
    static WORKER: OnceLock<Option<Worker>> = OnceLock::new();
    *WORKER.get_or_init(|| {
        real_platforms().into_iter().find_map(|platform| {
            let (mut device, mut found) = (0, 0);
            let status = target().device_ids(platform, TYPE_CPU, 1, &raw mut device, Some(&mut found));
            (status == SUCCESS && found > 0).then_some(Worker { platform, device })
        })
    })
}

fn real_platforms() -> Vec<Handle> {
    let mut count = 0;
    if target().platform_ids(0, std::ptr::null_mut(), Some(&mut count)) != SUCCESS {
        return Vec::new();
    }
    let mut platforms = vec![0; count as usize];
    match target().platform_ids(count, platforms.as_mut_ptr(), None) {
        SUCCESS => platforms,
        _ => Vec::new(),
    }
}

fn shown() -> impl Iterator<Item = &'static Device> {
    devices().iter().filter(|device| device.description.opencl)
}

/// The simulated device with that handle.
pub(super) fn simulated(handle: Handle) -> Option<&'static Device> {
    by_address(handle)
}

/// The device that does the work of that one: the CPU device for a simulated one, any other for itself.
pub(super) fn real(handle: Handle) -> Handle {
    match simulated(handle) {
        Some(_) => worker().map_or(handle, |worker| worker.device),
        None => handle,
    }
}

/// The devices that do the work of those, each once.
pub(super) fn real_devices(handles: &[Handle]) -> Vec<Handle> {
    let mut found = Vec::new();
    for device in handles.iter().map(|handle| real(*handle)) {
        if !found.contains(&device) {
            found.push(device);
        }
    }
    found
}

extern "C" fn platform_ids(room: u32, into: *mut Handle, found: Option<&mut u32>) -> Status {
    let mut platforms = real_platforms();
    if worker().is_some() && shown().next().is_some() {
        platforms.push(platform());
    }
    if platforms.is_empty() {
        return target().platform_ids(room, into, found);
    }
    list(&platforms, room, into, found);
    SUCCESS
}

extern "C" fn platform_info(
    asked: Handle,
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    const VERSION: u32 = 0x0901;
    const NAME: u32 = 0x0902;
    match (asked == platform(), worker()) {
        (true, Some(_)) if what == NAME => answer(size, into, needed, b"Intel(R) OpenCL Graphics\0"),
        (true, Some(_)) if what == VERSION => answer(size, into, needed, b"OpenCL 3.0 \0"),
        (true, Some(worker)) => target().platform_info(worker.platform, what, size, into, needed),
        _ => target().platform_info(asked, what, size, into, needed),
    }
}

extern "C" fn device_ids(
    asked: Handle,
    kinds: u64,
    room: u32,
    into: *mut Handle,
    found: Option<&mut u32>,
) -> Status {
    if asked != platform() {
        return target().device_ids(asked, kinds, room, into, found);
    }
    let wanted = |device: &&Device| {
        let kind = if device.description.gpu { TYPE_GPU } else { TYPE_CPU };
        kinds == TYPE_ALL || kinds & (TYPE_DEFAULT | kind) != 0
    };
    let all: Vec<Handle> = shown().filter(wanted).map(|device| std::ptr::from_ref(device).addr()).collect();
    list(&all, room, into, found);
    if all.is_empty() { DEVICE_NOT_FOUND } else { SUCCESS }
}

extern "C" fn device_info(
    handle: Handle,
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    match simulated(handle).and_then(|device| own_answer(device, what)) {
        Some(data) => answer(size, into, needed, &data),
        None => target().device_info(real(handle), what, size, into, needed),
    }
}

/// What a simulated device says of itself; for the rest it is what the CPU device is.
fn own_answer(device: &Device, what: u32) -> Option<Vec<u8>> {
    let it = &device.description;
    let word = |value: u32| value.to_ne_bytes().to_vec();
    let long = |value: u64| value.to_ne_bytes().to_vec();
    let text = |value: &str| [value.as_bytes(), b"\0"].concat();
    Some(match what {
        0x1000 => long(if it.gpu { TYPE_GPU } else { TYPE_CPU }), // CL_DEVICE_TYPE
        0x1001 => word(INTEL),                                    // CL_DEVICE_VENDOR_ID
        0x1002 => word(it.units),                                 // CL_DEVICE_MAX_COMPUTE_UNITS
        0x1010 => long(it.max_alloc),                             // CL_DEVICE_MAX_MEM_ALLOC_SIZE
        0x101F => long(it.mem),                                   // CL_DEVICE_GLOBAL_MEM_SIZE
        0x102B => text(&it.name),                                 // CL_DEVICE_NAME
        0x102D => text("26.27.39122"),                            // CL_DRIVER_VERSION
        0x1031 => long(platform() as u64),                        // CL_DEVICE_PLATFORM
        0x1035 => word(it.integrated.into()),                     // CL_DEVICE_HOST_UNIFIED_MEMORY
        0x1042 => long(0),                                        // CL_DEVICE_PARENT_DEVICE
        0x1043 => word(0),                                        // CL_DEVICE_PARTITION_MAX_SUB_DEVICES
        0x1044 => long(0),                                        // CL_DEVICE_PARTITION_PROPERTIES
        0x1045 => long(0),                                        // CL_DEVICE_PARTITION_AFFINITY_DOMAIN
        0x1047 => word(1),                                        // CL_DEVICE_REFERENCE_COUNT
        0x4190..=0x4193 => long(USM_CAPABLE), // CL_DEVICE_{HOST,DEVICE,SINGLE_DEVICE_SHARED,CROSS_…}_MEM_CAPABILITIES_INTEL
        0x4194 => long(0),                    // CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL
        0x4250 if it.gpu => word(IP_VERSION), // CL_DEVICE_IP_VERSION_INTEL
        0x4251 => word(it.id),                // CL_DEVICE_ID_INTEL
        0x106A => device.uuid().to_vec(),     // CL_DEVICE_UUID_KHR
        0x410F => [0, device.bus(), 0, 0].into_iter().flat_map(word).collect(), // CL_DEVICE_PCI_BUS_INFO_KHR
        _ => return None,
    })
}

extern "C" fn create_sub_devices(
    handle: Handle,
    properties: *const isize,
    room: u32,
    into: *mut Handle,
    found: Option<&mut u32>,
) -> Status {
    match simulated(handle) {
        Some(_) => DEVICE_PARTITION_FAILED,
        None => target().create_sub_devices(handle, properties, room, into, found),
    }
}

extern "C" fn retain_device(handle: Handle) -> Status {
    if simulated(handle).is_some() { SUCCESS } else { target().retain_device(handle) }
}

extern "C" fn release_device(handle: Handle) -> Status {
    if simulated(handle).is_some() { SUCCESS } else { target().release_device(handle) }
}

extern "C" fn device_and_host_timer(handle: Handle, on_device: *mut u64, on_host: *mut u64) -> Status {
    target().device_and_host_timer(real(handle), on_device, on_host)
}

extern "C" fn host_timer(handle: Handle, on_host: *mut u64) -> Status {
    target().host_timer(real(handle), on_host)
}
