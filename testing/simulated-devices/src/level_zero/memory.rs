//! Contexts and memory: blocks are mappings of our own, with the device's size enforced.

use std::ffi::c_void;

use super::abi::{chain, structure, ze_device_mem_alloc_desc_t, ze_memory_allocation_properties_t};
use super::device::Driver;
use super::{
    INVALID_ARGUMENT, INVALID_SIZE, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY, Outcome, SUCCESS,
    UNSUPPORTED_FEATURE, UNSUPPORTED_SIZE, created, destroyed,
};
use crate::blocks::{self, Backing, Block, Kind};
use crate::device::{Device, Refusal};
use crate::system::Mapping;

/// What the driver's pages hold, which blocks are aligned to.
const PAGE: usize = 64 << 10;

/// A context; nothing is in it.
pub struct Context(#[allow(dead_code)] Driver);

#[unsafe(no_mangle)]
pub extern "C" fn zeContextCreate(driver: Driver, _desc: *const c_void, into: &mut *mut Context) -> Outcome {
    created(into, Context(driver))
}

#[unsafe(no_mangle)]
pub extern "C" fn zeContextCreateEx(
    driver: Driver,
    _desc: *const c_void,
    _count: u32,
    _devices: *const c_void,
    into: &mut *mut Context,
) -> Outcome {
    created(into, Context(driver))
}

#[unsafe(no_mangle)]
pub extern "C" fn zeContextDestroy(context: *mut Context) -> Outcome {
    destroyed(context)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeContextGetStatus(_context: usize) -> Outcome {
    SUCCESS
}

/// All memory is always resident.
#[unsafe(no_mangle)]
pub extern "C" fn zeContextMakeMemoryResident(
    _context: usize,
    _device: &Device,
    _address: usize,
    _bytes: usize,
) -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeContextEvictMemory(
    _context: usize,
    _device: &Device,
    _address: usize,
    _bytes: usize,
) -> Outcome {
    SUCCESS
}

fn may_be_any_size(desc: Option<&ze_device_mem_alloc_desc_t>) -> bool {
    let first = desc.map_or(std::ptr::null(), |desc| desc.pNext);
    chain(first).any(|one| one.stype == structure::RELAXED_ALLOCATION_LIMITS_EXP_DESC)
}

fn allocate(
    context: usize,
    device: Option<&'static Device>,
    kind: Kind,
    request: (usize, usize, bool),
    into: &mut usize,
) -> Outcome {
    let (bytes, align, any_size) = request;
    if bytes == 0 {
        return INVALID_SIZE;
    }
    match device.map_or(Ok(()), |device| device.reserve(bytes as u64, any_size)) {
        Ok(()) => {}
        Err(Refusal::TooLarge) => return UNSUPPORTED_SIZE,
        Err(Refusal::Full) => return OUT_OF_DEVICE_MEMORY,
    }
    let Some((mapping, start)) = Mapping::new(bytes, align.max(PAGE)) else {
        if let Some(device) = device {
            device.release(bytes as u64);
        }
        return OUT_OF_HOST_MEMORY;
    };
    blocks::add(start, Block { bytes, kind, device, context, backing: Backing::Own(mapping) });
    *into = start;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeMemAllocDevice(
    context: usize,
    desc: Option<&ze_device_mem_alloc_desc_t>,
    bytes: usize,
    align: usize,
    device: &'static Device,
    into: &mut usize,
) -> Outcome {
    allocate(context, Some(device), Kind::Device, (bytes, align, may_be_any_size(desc)), into)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeMemAllocShared(
    context: usize,
    desc: Option<&ze_device_mem_alloc_desc_t>,
    _host_desc: *const c_void,
    bytes: usize,
    align: usize,
    device: Option<&'static Device>,
    into: &mut usize,
) -> Outcome {
    allocate(context, device, Kind::Shared, (bytes, align, may_be_any_size(desc)), into)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeMemAllocHost(
    context: usize,
    _desc: *const c_void,
    bytes: usize,
    align: usize,
    into: &mut usize,
) -> Outcome {
    allocate(context, None, Kind::Host, (bytes, align, true), into)
}

/// Work is done when it is ordered, so whatever is freed is not in use.
#[unsafe(no_mangle)]
pub extern "C" fn zeMemFree(_context: usize, address: usize) -> Outcome {
    let Some(block) = blocks::take(address) else { return INVALID_ARGUMENT };
    block.release();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeMemFreeExt(context: usize, _desc: *const c_void, address: usize) -> Outcome {
    zeMemFree(context, address)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeMemGetAllocProperties(
    _context: usize,
    address: usize,
    it: &mut ze_memory_allocation_properties_t,
    device: Option<&mut usize>,
) -> Outcome {
    let known = blocks::find(address, |start, block| {
        let owner = block.device.map_or(0, |device| std::ptr::from_ref(device).addr());
        (block.kind, start, owner)
    });
    it.type_ = match known {
        None => 0,
        Some((Kind::Host, ..)) => 1,
        Some((Kind::Device, ..)) => 2,
        Some((Kind::Shared, ..)) => 3,
    };
    it.id = known.map_or(0, |(_, start, _)| start as u64);
    it.pageSize = PAGE as u64;
    if let Some(device) = device {
        *device = known.map_or(0, |(_, _, owner)| owner);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeMemGetAddressRange(
    _context: usize,
    address: usize,
    base: Option<&mut usize>,
    size: Option<&mut usize>,
) -> Outcome {
    let Some((start, bytes)) = blocks::find(address, |start, block| (start, block.bytes)) else {
        return INVALID_ARGUMENT;
    };
    if let Some(base) = base {
        *base = start;
    }
    if let Some(size) = size {
        *size = bytes;
    }
    SUCCESS
}

macro_rules! unsupported {
    ($($name:ident)*) => { $(
        /// Memory can't be lent to another process.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> Outcome {
            UNSUPPORTED_FEATURE
        }
    )* };
}

unsupported! { zeMemGetIpcHandle zeMemOpenIpcHandle zeMemCloseIpcHandle zeMemPutIpcHandle }
