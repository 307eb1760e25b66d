//! The driver and its devices, and what they answer.

use std::ffi::{c_char, c_void};
use std::time::{SystemTime, UNIX_EPOCH};

use super::abi::*;
use super::{Outcome, SUCCESS, UNSUPPORTED_FEATURE, list};
use crate::device::{Device, IP_VERSION, devices};
use crate::foreign::write_text;

/// A driver's handle; there is one driver.
pub type Driver = usize;

/// 1.13, in the manner of `ze_api_version_t`.
pub(super) const API_VERSION: u32 = (1 << 16) | 13;
pub(super) const GPU: u32 = 1;
pub(super) const INTEL: u32 = 0x8086;
pub(super) const INTEGRATED: u32 = 1;
/// A tick of the device's clock.
const TICK_NS: u64 = 52;
const COUNTER_BITS: u32 = 32;
const EXTENSIONS: [&str; 5] = [
    "ZE_experimental_global_offset",
    "ZE_experimental_module_program",
    "ZE_experimental_relaxed_allocation_limits",
    "ZE_extension_pci_properties",
    "ZE_extension_device_ip_version",
];

static DRIVER: [usize; 8] = [0; 8];

pub(super) fn driver() -> Driver {
    DRIVER.as_ptr().addr()
}

/// The devices that Level Zero shows.
pub(super) fn shown() -> Vec<&'static Device> {
    devices().iter().filter(|device| device.description.level_zero).collect()
}

/// The host's clock in nanoseconds.
pub(super) fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// A time as the device's clock tells it.
pub(super) fn ticks(time_ns: u64) -> u64 {
    (time_ns / TICK_NS) & ((1 << COUNTER_BITS) - 1)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeInit(_flags: u32) -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeInitDrivers(count: &mut u32, into: *mut Driver, _kinds: *mut c_void) -> Outcome {
    list(count, into, &[driver()])
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDriverGet(count: &mut u32, into: *mut Driver) -> Outcome {
    list(count, into, &[driver()])
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDriverGetApiVersion(_driver: Driver, version: &mut u32) -> Outcome {
    *version = API_VERSION;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDriverGetProperties(_driver: Driver, it: &mut ze_driver_properties_t) -> Outcome {
    it.uuid = [7; 16];
    it.driverVersion = (1 << 24) | (6 << 16) | 33_578;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDriverGetIpcProperties(_driver: Driver, it: &mut ze_driver_ipc_properties_t) -> Outcome {
    it.flags = 0;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDriverGetExtensionProperties(
    _driver: Driver,
    count: &mut u32,
    into: *mut ze_driver_extension_properties_t,
) -> Outcome {
    let all = EXTENSIONS.map(|name| {
        let mut it = ze_driver_extension_properties_t { name: [0; 256], version: 1 << 16 };
        write_text(&mut it.name, name);
        it
    });
    list(count, into, &all)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDriverGetExtensionFunctionAddress(
    _driver: Driver,
    _name: *const c_char,
    function: &mut usize,
) -> Outcome {
    *function = 0;
    UNSUPPORTED_FEATURE
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDriverGetLastErrorDescription(_driver: Driver, text: &mut *const c_char) -> Outcome {
    *text = c"".as_ptr();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGet(_driver: Driver, count: &mut u32, into: *mut &'static Device) -> Outcome {
    list(count, into, &shown())
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetSubDevices(_device: &Device, count: &mut u32, _into: *mut c_void) -> Outcome {
    *count = 0;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetRootDevice(_device: &Device, root: &mut usize) -> Outcome {
    *root = 0;
    SUCCESS
}

/// What the core and the Sysman interface both say of a device.
pub(super) fn describe(device: &Device, it: &mut ze_device_properties_t) {
    let description = &device.description;
    it.type_ = GPU;
    it.vendorId = INTEL;
    it.deviceId = description.id;
    it.flags = if description.integrated { INTEGRATED } else { 0 };
    it.subdeviceId = 0;
    it.coreClockRate = 1600;
    it.maxMemAllocSize = description.max_alloc;
    it.maxHardwareContexts = 65_536;
    it.maxCommandQueuePriority = 0;
    it.numThreadsPerEU = 8;
    it.physicalEUSimdWidth = 16;
    it.numEUsPerSubslice = 8;
    it.numSubslicesPerSlice = 4;
    it.numSlices = (description.units / 32).max(1);
    // Nanoseconds a tick in the first version of the structure, ticks a second in the second.
    it.timerResolution =
        if it.stype == structure::DEVICE_PROPERTIES_1_2 { 1_000_000_000 / TICK_NS } else { TICK_NS };
    it.timestampValidBits = COUNTER_BITS;
    it.kernelTimestampValidBits = COUNTER_BITS;
    it.uuid = device.uuid();
    write_text(&mut it.name, &description.name);
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetProperties(device: &Device, it: &mut ze_device_properties_t) -> Outcome {
    describe(device, it);
    let mut next = it.pNext;
    // SAFETY: the caller's promise: `pNext` is null or points to a structure that begins as this one does.
    while let Some(one) = unsafe { next.as_mut() } {
        match one.stype {
            structure::DEVICE_IP_VERSION_EXT => {
                // SAFETY: the caller's promise: `stype` says which structure it is.
                unsafe { (*next.cast::<ze_device_ip_version_ext_t>()).ipVersion = IP_VERSION };
            }
            structure::EU_COUNT_EXT => {
                // SAFETY: as above.
                unsafe { (*next.cast::<ze_eu_count_ext_t>()).numTotalEUs = device.description.units };
            }
            _ => {}
        }
        next = one.pNext.cast_mut();
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetComputeProperties(
    _device: &Device,
    it: &mut ze_device_compute_properties_t,
) -> Outcome {
    it.maxTotalGroupSize = 1024;
    (it.maxGroupSizeX, it.maxGroupSizeY, it.maxGroupSizeZ) = (1024, 1024, 1024);
    (it.maxGroupCountX, it.maxGroupCountY, it.maxGroupCountZ) = (u32::MAX, u32::MAX, u32::MAX);
    it.maxSharedLocalMemory = 64 << 10;
    it.numSubGroupSizes = 2;
    it.subGroupSizes = [16, 32, 0, 0, 0, 0, 0, 0];
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetModuleProperties(
    _device: &Device,
    it: &mut ze_device_module_properties_t,
) -> Outcome {
    /// Half and double precision, and 64-bit and other atomics.
    const FLAGS: u32 = 0xf;
    const ALL_ROUNDINGS: u32 = 0x7f;
    it.spirvVersionSupported = (1 << 16) | 4;
    it.flags = FLAGS;
    (it.fp16flags, it.fp32flags, it.fp64flags) = (ALL_ROUNDINGS, ALL_ROUNDINGS, ALL_ROUNDINGS);
    it.maxArgumentsSize = 2048;
    it.printfBufferSize = 4 << 20;
    it.nativeKernelSupported = [1; 16];
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetCommandQueueGroupProperties(
    _device: &Device,
    count: &mut u32,
    into: *mut ze_command_queue_group_properties_t,
) -> Outcome {
    const COMPUTE_AND_COPY: u32 = 0b11;
    // SAFETY: the caller's promise: room for `count` structures if there is a place for them at all.
    if let (Some(it), 1..) = (unsafe { into.as_mut() }, *count) {
        it.flags = COMPUTE_AND_COPY;
        it.maxMemoryFillPatternSize = 128;
        it.numQueues = 1;
    }
    *count = 1;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetMemoryProperties(
    device: &Device,
    count: &mut u32,
    into: *mut ze_device_memory_properties_t,
) -> Outcome {
    // SAFETY: the caller's promise: room for `count` structures if there is a place for them at all.
    if let (Some(it), 1..) = (unsafe { into.as_mut() }, *count) {
        it.flags = 0;
        it.maxClockRate = 3200;
        it.maxBusWidth = 64;
        it.totalSize = device.description.mem;
        write_text(&mut it.name, if device.description.integrated { "DDR" } else { "HBM" });
    }
    *count = 1;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetMemoryAccessProperties(
    _device: &Device,
    it: &mut ze_device_memory_access_properties_t,
) -> Outcome {
    const ACCESS_AND_ATOMIC: u32 = 0b11;
    it.hostAllocCapabilities = ACCESS_AND_ATOMIC;
    it.deviceAllocCapabilities = ACCESS_AND_ATOMIC;
    it.sharedSingleDeviceAllocCapabilities = ACCESS_AND_ATOMIC;
    it.sharedCrossDeviceAllocCapabilities = 0;
    it.sharedSystemAllocCapabilities = 0;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetCacheProperties(
    _device: &Device,
    count: &mut u32,
    into: *mut ze_device_cache_properties_t,
) -> Outcome {
    // SAFETY: the caller's promise: room for `count` structures if there is a place for them at all.
    if let (Some(it), 1..) = (unsafe { into.as_mut() }, *count) {
        it.flags = 0;
        it.cacheSize = 16 << 20;
    }
    *count = 1;
    SUCCESS
}

/// There are no images.
#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetImageProperties(
    _device: &Device,
    it: &mut ze_device_image_properties_t,
) -> Outcome {
    (it.maxImageDims1D, it.maxImageDims2D, it.maxImageDims3D) = (0, 0, 0);
    (it.maxImageBufferSize, it.maxImageArraySlices, it.maxSamplers) = (0, 0, 0);
    (it.maxReadImageArgs, it.maxWriteImageArgs) = (0, 0);
    SUCCESS
}

/// Memory of others can't be imported.
#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetExternalMemoryProperties(
    _device: &Device,
    it: &mut ze_device_external_memory_properties_t,
) -> Outcome {
    (it.memoryAllocationImportTypes, it.memoryAllocationExportTypes) = (0, 0);
    (it.imageImportTypes, it.imageExportTypes) = (0, 0);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetP2PProperties(
    _device: &Device,
    _peer: &Device,
    it: &mut ze_device_p2p_properties_t,
) -> Outcome {
    it.flags = 0;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceCanAccessPeer(device: &Device, peer: &Device, can: &mut u8) -> Outcome {
    *can = std::ptr::eq(device, peer).into();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetStatus(_device: &Device) -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDevicePciGetPropertiesExt(device: &Device, it: &mut ze_pci_ext_properties_t) -> Outcome {
    it.address = ze_pci_address_ext_t { domain: 0, bus: device.bus(), device: 0, function: 0 };
    it.maxSpeed = ze_pci_speed_ext_t { genVersion: 5, width: 16, maxBandwidth: 63_000_000_000 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeDeviceGetGlobalTimestamps(
    _device: &Device,
    host: &mut u64,
    on_device: &mut u64,
) -> Outcome {
    *host = now_ns();
    *on_device = ticks(*host);
    SUCCESS
}
