//! The structures of Level Zero that are used, written by hand from its specification, and nothing more than is used.
//!
//! [`LAYOUTS`] says where every field is; a test compares it with the headers where those are installed.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

/// How a structure lies in memory. A field's name ends with `_` where the name is a word of Rust.
pub struct Layout {
    pub name: &'static str,
    pub size: usize,
    pub fields: &'static [(&'static str, usize)],
}

macro_rules! structures {
    ($($name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name { $(pub $field: $type),* }
        )*

        pub const LAYOUTS: &[Layout] = &[$(Layout {
            name: stringify!($name),
            size: size_of::<$name>(),
            fields: &[$((stringify!($field), std::mem::offset_of!($name, $field))),*],
        }),*];
    };
}

type Next = *mut c_void;
type Name = [c_char; 256];
type Property = [c_char; 64];

structures! {
    ze_base_desc_t { stype: u32, pNext: *const ze_base_desc_t }
    ze_driver_properties_t { stype: u32, pNext: Next, uuid: [u8; 16], driverVersion: u32 }
    ze_driver_extension_properties_t { name: Name, version: u32 }
    ze_driver_ipc_properties_t { stype: u32, pNext: Next, flags: u32 }
    ze_device_properties_t {
        stype: u32, pNext: *mut ze_base_desc_t, type_: u32, vendorId: u32, deviceId: u32, flags: u32, subdeviceId: u32,
        coreClockRate: u32, maxMemAllocSize: u64, maxHardwareContexts: u32, maxCommandQueuePriority: u32,
        numThreadsPerEU: u32, physicalEUSimdWidth: u32, numEUsPerSubslice: u32, numSubslicesPerSlice: u32,
        numSlices: u32, timerResolution: u64, timestampValidBits: u32, kernelTimestampValidBits: u32, uuid: [u8; 16],
        name: Name,
    }
    ze_device_ip_version_ext_t { stype: u32, pNext: Next, ipVersion: u32 }
    ze_eu_count_ext_t { stype: u32, pNext: Next, numTotalEUs: u32 }
    ze_device_compute_properties_t {
        stype: u32, pNext: Next, maxTotalGroupSize: u32, maxGroupSizeX: u32, maxGroupSizeY: u32, maxGroupSizeZ: u32,
        maxGroupCountX: u32, maxGroupCountY: u32, maxGroupCountZ: u32, maxSharedLocalMemory: u32,
        numSubGroupSizes: u32, subGroupSizes: [u32; 8],
    }
    ze_device_module_properties_t {
        stype: u32, pNext: Next, spirvVersionSupported: u32, flags: u32, fp16flags: u32, fp32flags: u32,
        fp64flags: u32, maxArgumentsSize: u32, printfBufferSize: u32, nativeKernelSupported: [u8; 16],
    }
    ze_command_queue_group_properties_t {
        stype: u32, pNext: Next, flags: u32, maxMemoryFillPatternSize: usize, numQueues: u32,
    }
    ze_device_memory_properties_t {
        stype: u32, pNext: Next, flags: u32, maxClockRate: u32, maxBusWidth: u32, totalSize: u64, name: Name,
    }
    ze_device_memory_access_properties_t {
        stype: u32, pNext: Next, hostAllocCapabilities: u32, deviceAllocCapabilities: u32,
        sharedSingleDeviceAllocCapabilities: u32, sharedCrossDeviceAllocCapabilities: u32,
        sharedSystemAllocCapabilities: u32,
    }
    ze_device_cache_properties_t { stype: u32, pNext: Next, flags: u32, cacheSize: usize }
    ze_device_image_properties_t {
        stype: u32, pNext: Next, maxImageDims1D: u32, maxImageDims2D: u32, maxImageDims3D: u32,
        maxImageBufferSize: u64, maxImageArraySlices: u32, maxSamplers: u32, maxReadImageArgs: u32,
        maxWriteImageArgs: u32,
    }
    ze_device_external_memory_properties_t {
        stype: u32, pNext: Next, memoryAllocationImportTypes: u32, memoryAllocationExportTypes: u32,
        imageImportTypes: u32, imageExportTypes: u32,
    }
    ze_device_p2p_properties_t { stype: u32, pNext: Next, flags: u32 }
    ze_pci_address_ext_t { domain: u32, bus: u32, device: u32, function: u32 }
    ze_pci_speed_ext_t { genVersion: i32, width: i32, maxBandwidth: i64 }
    ze_pci_ext_properties_t { stype: u32, pNext: Next, address: ze_pci_address_ext_t, maxSpeed: ze_pci_speed_ext_t }
    ze_device_mem_alloc_desc_t { stype: u32, pNext: *const ze_base_desc_t, flags: u32, ordinal: u32 }
    ze_memory_allocation_properties_t { stype: u32, pNext: Next, type_: u32, id: u64, pageSize: u64 }
    ze_kernel_timestamp_data_t { kernelStart: u64, kernelEnd: u64 }
    ze_kernel_timestamp_result_t { global: ze_kernel_timestamp_data_t, context: ze_kernel_timestamp_data_t }
    ze_copy_region_t { originX: u32, originY: u32, originZ: u32, width: u32, height: u32, depth: u32 }
    ze_module_constants_t { numConstants: u32, pConstantIds: *const u32, pConstantValues: *const *const u8 }
    ze_module_desc_t {
        stype: u32, pNext: *const ze_base_desc_t, format: u32, inputSize: usize, pInputModule: *const u8,
        pBuildFlags: *const c_char, pConstants: *const ze_module_constants_t,
    }
    ze_module_program_exp_desc_t {
        stype: u32, pNext: *const ze_base_desc_t, count: u32, inputSizes: *const usize,
        pInputModules: *const *const u8, pBuildFlags: *const *const c_char,
        pConstants: *const *const ze_module_constants_t,
    }
    ze_module_properties_t { stype: u32, pNext: Next, flags: u32 }
    ze_kernel_desc_t { stype: u32, pNext: Next, flags: u32, pKernelName: *const c_char }
    ze_kernel_properties_t {
        stype: u32, pNext: Next, numKernelArgs: u32, requiredGroupSizeX: u32, requiredGroupSizeY: u32,
        requiredGroupSizeZ: u32, requiredNumSubGroups: u32, requiredSubgroupSize: u32, maxSubgroupSize: u32,
        maxNumSubgroups: u32, localMemSize: u32, privateMemSize: u32, spillMemSize: u32, uuid: [u8; 32],
    }
    ze_group_count_t { groupCountX: u32, groupCountY: u32, groupCountZ: u32 }
    zel_version_t { major: i32, minor: i32, patch: i32 }
    zel_component_version_t { component_name: Property, spec_version: u32, component_lib_version: zel_version_t }
    zes_uuid_t { id: [u8; 16] }
    zes_device_properties_t {
        stype: u32, pNext: Next, core: ze_device_properties_t, numSubdevices: u32, serialNumber: Property,
        boardNumber: Property, brandName: Property, modelName: Property, vendorName: Property,
        driverVersion: Property,
    }
    zes_pci_address_t { domain: u32, bus: u32, device: u32, function: u32 }
    zes_pci_speed_t { gen_: i32, width: i32, maxBandwidth: i64 }
    zes_pci_properties_t {
        stype: u32, pNext: Next, address: zes_pci_address_t, maxSpeed: zes_pci_speed_t, haveBandwidthCounters: u8,
        havePacketCounters: u8, haveReplayCounters: u8,
    }
    zes_mem_properties_t {
        stype: u32, pNext: Next, type_: u32, onSubdevice: u8, subdeviceId: u32, location: u32, physicalSize: u64,
        busWidth: i32, numChannels: i32,
    }
    zes_mem_state_t { stype: u32, pNext: Next, health: u32, free: u64, size: u64 }
}

/// `ze_structure_type_t`, where it matters.
pub mod structure {
    crate::level_zero::values! { STRUCTURES
        DEVICE_PROPERTIES_1_2 ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2 = 0x0002_0006;
        DEVICE_IP_VERSION_EXT ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT = 0x0001_000f;
        EU_COUNT_EXT ZE_STRUCTURE_TYPE_EU_COUNT_EXT = 0x0001_0005;
        RELAXED_ALLOCATION_LIMITS_EXP_DESC ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC = 0x0002_0001;
        MODULE_PROGRAM_EXP_DESC ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC = 0x0002_0002;
    }
}

/// The structures that hang on to one, the first included.
pub fn chain<'a>(first: *const ze_base_desc_t) -> impl Iterator<Item = &'a ze_base_desc_t> {
    // SAFETY: the caller's promise: `pNext` is null or points to a structure that begins as this one does.
    std::iter::successors(unsafe { first.as_ref() }, |one| unsafe { one.pNext.as_ref() })
}
