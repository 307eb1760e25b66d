//! Unified shared memory: the functions that the extension hands out by name.
//!
//! A block comes from the CPU runtime where that can give it, so that a free waits for work that uses the block, just as
//! on the CPU device. What is larger than the CPU runtime gives (a card may be larger than this machine) is a mapping of
//! our own. Freeing that can't wait; it stays mapped for a while, so that work under way finds it.
//!
//! As on a GPU, device and shared memory come in whole pages, whatever was asked for: kernels made for GPUs (oneMKL's
//! random numbers) write past the end of small blocks.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::context::devices_of;
use super::platform::{platform, real, simulated, worker};
use super::target::Slot;
use super::{
    Handle, INVALID_BUFFER_SIZE, INVALID_VALUE, OUT_OF_HOST_MEMORY, OUT_OF_RESOURCES, SUCCESS, Status,
};
use super::{answer, target};
use crate::blocks::{self, Backing, Block, Kind};
use crate::device::{Device, Refusal};
use crate::system::{Mapping, PAGE};

pub(super) const FUNCTIONS: &[(Slot, *const ())] = &[
    (target::EXTENSION, extension as *const ()),
    (target::PLATFORM_EXTENSION, platform_extension as *const ()),
];

type HostAlloc = extern "C" fn(Handle, *const u64, usize, u32, Option<&mut Status>) -> usize;
type Alloc = extern "C" fn(Handle, Handle, *const u64, usize, u32, Option<&mut Status>) -> usize;
type Free = extern "C" fn(Handle, usize) -> Status;
type AllocInfo = extern "C" fn(Handle, usize, u32, usize, *mut u8, Option<&mut usize>) -> Status;
type GlobalPointer = extern "C" fn(Handle, Handle, *const c_char, *mut usize, *mut usize) -> Status;

/// A function of the CPU runtime.
fn below<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = target().platform_extension(worker()?.platform, name.as_ptr());
    // SAFETY: each caller here names a function together with the type that the extension's text gives it.
    (address != 0).then(|| unsafe { std::mem::transmute_copy::<usize, F>(&address) })
}

/// Our function for a name, if there is one.
fn ours(name: *const c_char) -> Option<*const ()> {
    // SAFETY: the caller's promise: a C string.
    let name = unsafe { CStr::from_ptr(name) };
    Some(match name.to_bytes() {
        b"clHostMemAllocINTEL" => host_alloc as *const (),
        b"clDeviceMemAllocINTEL" => device_alloc as *const (),
        b"clSharedMemAllocINTEL" => shared_alloc as *const (),
        b"clMemFreeINTEL" => free as *const (),
        b"clMemBlockingFreeINTEL" => blocking_free as *const (),
        b"clGetMemAllocInfoINTEL" => alloc_info as *const (),
        b"clGetDeviceGlobalVariablePointerINTEL" => global_pointer as *const (),
        _ => return None,
    })
}

extern "C" fn platform_extension(asked: Handle, name: *const c_char) -> usize {
    let Some(worker) = worker() else { return target().platform_extension(asked, name) };
    let real = if asked == platform() { worker.platform } else { asked };
    let address = target().platform_extension(real, name);
    // SYCL asks once for both platforms, so the CPU runtime's functions are ours as well; these pass on what is not.
    if real == worker.platform && address != 0 {
        return ours(name).map_or(address, |function| function.addr());
    }
    address
}

extern "C" fn extension(name: *const c_char) -> usize {
    ours(name).map_or_else(|| target().extension(name), |function| function.addr())
}

fn tell(status: Option<&mut Status>, value: Status) {
    if let Some(status) = status {
        *status = value;
    }
}

extern "C" fn host_alloc(
    context: Handle,
    properties: *const u64,
    bytes: usize,
    align: u32,
    status: Option<&mut Status>,
) -> usize {
    let Some(alloc) = below::<HostAlloc>(c"clHostMemAllocINTEL") else {
        tell(status, INVALID_VALUE);
        return 0;
    };
    if devices_of(context).is_none() {
        return alloc(context, properties, bytes, align, status);
    }
    let upstream = || alloc(context, properties, bytes, align, None);
    allocate(Request { context, device: None, kind: Kind::Host, bytes, align }, upstream, status)
}

extern "C" fn device_alloc(
    context: Handle,
    device: Handle,
    properties: *const u64,
    bytes: usize,
    align: u32,
    status: Option<&mut Status>,
) -> usize {
    let name = c"clDeviceMemAllocINTEL";
    on_device(name, Kind::Device, (context, device, properties, bytes, align), status)
}

extern "C" fn shared_alloc(
    context: Handle,
    device: Handle,
    properties: *const u64,
    bytes: usize,
    align: u32,
    status: Option<&mut Status>,
) -> usize {
    let name = c"clSharedMemAllocINTEL";
    on_device(name, Kind::Shared, (context, device, properties, bytes, align), status)
}

type Arguments = (Handle, Handle, *const u64, usize, u32);

fn on_device(name: &CStr, kind: Kind, arguments: Arguments, status: Option<&mut Status>) -> usize {
    let (context, device, properties, bytes, align) = arguments;
    let Some(alloc) = below::<Alloc>(name) else {
        tell(status, INVALID_VALUE);
        return 0;
    };
    let Some(owner) = simulated(device) else {
        return alloc(context, device, properties, bytes, align, status);
    };
    let pages = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes);
    let upstream = || alloc(context, real(device), properties, pages, align, None);
    allocate(Request { context, device: Some(owner), kind, bytes, align }, upstream, status)
}

struct Request {
    context: Handle,
    device: Option<&'static Device>,
    kind: Kind,
    bytes: usize,
    align: u32,
}

fn allocate(request: Request, upstream: impl FnOnce() -> usize, status: Option<&mut Status>) -> usize {
    let Request { context, device, kind, bytes, align } = request;
    let room = match device {
        _ if bytes == 0 => Err(INVALID_BUFFER_SIZE),
        Some(device) => device.reserve(bytes as u64, false).map_err(|refusal| match refusal {
            Refusal::TooLarge => INVALID_BUFFER_SIZE,
            Refusal::Full => OUT_OF_RESOURCES,
        }),
        None => Ok(()),
    };
    if let Err(error) = room {
        tell(status, error);
        return 0;
    }
    let (address, backing) = match upstream() {
        0 => match Mapping::new(bytes, align as usize) {
            Some((mapping, start)) => (start, Backing::Own(mapping)),
            None => {
                if let Some(device) = device {
                    device.release(bytes as u64);
                }
                tell(status, OUT_OF_HOST_MEMORY);
                return 0;
            }
        },
        address => (address, Backing::Runtime),
    };
    blocks::add(address, Block { bytes, kind, device, context, backing });
    tell(status, SUCCESS);
    address
}

extern "C" fn free(context: Handle, address: usize) -> Status {
    free_by(c"clMemFreeINTEL", context, address)
}

extern "C" fn blocking_free(context: Handle, address: usize) -> Status {
    free_by(c"clMemBlockingFreeINTEL", context, address)
}

fn free_by(name: &CStr, context: Handle, address: usize) -> Status {
    let upstream = || below::<Free>(name).map_or(INVALID_VALUE, |free| free(context, address));
    // It is taken out first: once it is free, the runtime may hand the address out again.
    let Some(block) = blocks::take(address) else { return upstream() };
    if matches!(block.backing, Backing::Runtime) {
        // This may wait for work that uses the block, whose room is taken until then.
        let status = upstream();
        if status != SUCCESS {
            blocks::put_back(address, block);
            return status;
        }
    }
    block.release();
    if let Backing::Own(mapping) = block.backing {
        unmap_later(mapping);
    }
    SUCCESS
}

fn unmap_later(mapping: Mapping) {
    const STAYS: Duration = Duration::from_secs(5);
    static LEAVING: Mutex<VecDeque<(Instant, Mapping)>> = Mutex::new(VecDeque::new());
    let mut leaving = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
    leaving.push_back((Instant::now(), mapping));
    while leaving.front().is_some_and(|(since, _)| since.elapsed() > STAYS) {
        leaving.pop_front();
    }
}

extern "C" fn alloc_info(
    context: Handle,
    address: usize,
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    const TYPE: u32 = 0x419A;
    const BASE: u32 = 0x419B;
    const SIZE: u32 = 0x419C;
    const DEVICE: u32 = 0x419D;
    let known = blocks::find(address, |start, block| {
        let kind: u32 = match block.kind {
            Kind::Host => 0x4197,
            Kind::Device => 0x4198,
            Kind::Shared => 0x4199,
        };
        let device = block.device.map_or(0, |device| std::ptr::from_ref(device).addr());
        let word = match what {
            TYPE => return (block.context, Some(kind.to_ne_bytes().to_vec())),
            BASE => start,
            SIZE => block.bytes,
            DEVICE => device,
            _ => return (block.context, None),
        };
        (block.context, Some(word.to_ne_bytes().to_vec()))
    });
    match known {
        Some((owner, Some(data))) if owner == context => answer(size, into, needed, &data),
        _ => below::<AllocInfo>(c"clGetMemAllocInfoINTEL")
            .map_or(INVALID_VALUE, |ask| ask(context, address, what, size, into, needed)),
    }
}

extern "C" fn global_pointer(
    device: Handle,
    program: Handle,
    name: *const c_char,
    size: *mut usize,
    pointer: *mut usize,
) -> Status {
    below::<GlobalPointer>(c"clGetDeviceGlobalVariablePointerINTEL")
        .map_or(INVALID_VALUE, |ask| ask(real(device), program, name, size, pointer))
}
