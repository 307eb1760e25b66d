//! The loader's part: tables of functions by their place, and the loader's own functions.
//!
//! A table only ever grows at its end, and every adapter's is long enough for the places used here. Places that are not
//! filled stay null, which the adapters' half of the loader answers as "unsupported".

use std::ffi::c_void;

use super::abi::{zel_component_version_t, zel_version_t};
use super::{Outcome, SUCCESS, device, event, kernel, list, memory, module, sysman};
use crate::foreign::write_text;

/// The places of a table that are filled, for the layout test.
pub struct Table {
    pub name: &'static str,
    pub places: &'static [(usize, &'static str)],
}

macro_rules! tables {
    ($($export:ident $table:ident { $($place:literal $field:ident = $function:path),* $(,)? })*) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $export(_version: u32, table: *mut *const ()) -> Outcome {
                for (place, function) in [$(($place, $function as *const ())),*] {
                    // SAFETY: the caller's promise: a table of this kind, which has a place of this number.
                    unsafe { table.add(place).write(function) };
                }
                SUCCESS
            }
        )*

        pub const TABLES: &[Table] =
            &[$(Table { name: stringify!($table), places: &[$(($place, stringify!($field))),*] }),*];
    };
}

tables! {
    zeGetGlobalProcAddrTable ze_global_dditable_t {
        0 pfnInit = device::zeInit, 1 pfnInitDrivers = device::zeInitDrivers,
    }
    zeGetDriverProcAddrTable ze_driver_dditable_t {
        0 pfnGet = device::zeDriverGet, 1 pfnGetApiVersion = device::zeDriverGetApiVersion,
        2 pfnGetProperties = device::zeDriverGetProperties, 3 pfnGetIpcProperties = device::zeDriverGetIpcProperties,
        4 pfnGetExtensionProperties = device::zeDriverGetExtensionProperties,
        5 pfnGetExtensionFunctionAddress = device::zeDriverGetExtensionFunctionAddress,
        6 pfnGetLastErrorDescription = device::zeDriverGetLastErrorDescription,
    }
    zeGetDeviceProcAddrTable ze_device_dditable_t {
        0 pfnGet = device::zeDeviceGet, 1 pfnGetSubDevices = device::zeDeviceGetSubDevices,
        2 pfnGetProperties = device::zeDeviceGetProperties,
        3 pfnGetComputeProperties = device::zeDeviceGetComputeProperties,
        4 pfnGetModuleProperties = device::zeDeviceGetModuleProperties,
        5 pfnGetCommandQueueGroupProperties = device::zeDeviceGetCommandQueueGroupProperties,
        6 pfnGetMemoryProperties = device::zeDeviceGetMemoryProperties,
        7 pfnGetMemoryAccessProperties = device::zeDeviceGetMemoryAccessProperties,
        8 pfnGetCacheProperties = device::zeDeviceGetCacheProperties,
        9 pfnGetImageProperties = device::zeDeviceGetImageProperties,
        10 pfnGetExternalMemoryProperties = device::zeDeviceGetExternalMemoryProperties,
        11 pfnGetP2PProperties = device::zeDeviceGetP2PProperties,
        12 pfnCanAccessPeer = device::zeDeviceCanAccessPeer, 13 pfnGetStatus = device::zeDeviceGetStatus,
        14 pfnGetGlobalTimestamps = device::zeDeviceGetGlobalTimestamps,
        17 pfnPciGetPropertiesExt = device::zeDevicePciGetPropertiesExt,
        18 pfnGetRootDevice = device::zeDeviceGetRootDevice,
    }
    zeGetContextProcAddrTable ze_context_dditable_t {
        0 pfnCreate = memory::zeContextCreate, 1 pfnDestroy = memory::zeContextDestroy,
        2 pfnGetStatus = memory::zeContextGetStatus,
        4 pfnMakeMemoryResident = memory::zeContextMakeMemoryResident,
        5 pfnEvictMemory = memory::zeContextEvictMemory, 8 pfnCreateEx = memory::zeContextCreateEx,
    }
    zeGetMemProcAddrTable ze_mem_dditable_t {
        0 pfnAllocShared = memory::zeMemAllocShared, 1 pfnAllocDevice = memory::zeMemAllocDevice,
        2 pfnAllocHost = memory::zeMemAllocHost, 3 pfnFree = memory::zeMemFree,
        4 pfnGetAllocProperties = memory::zeMemGetAllocProperties,
        5 pfnGetAddressRange = memory::zeMemGetAddressRange, 9 pfnFreeExt = memory::zeMemFreeExt,
    }
    zeGetCommandQueueProcAddrTable ze_command_queue_dditable_t {
        0 pfnCreate = list::zeCommandQueueCreate, 1 pfnDestroy = list::zeCommandQueueDestroy,
        2 pfnExecuteCommandLists = list::zeCommandQueueExecuteCommandLists,
        3 pfnSynchronize = list::zeCommandQueueSynchronize,
    }
    zeGetCommandListProcAddrTable ze_command_list_dditable_t {
        0 pfnCreate = list::zeCommandListCreate, 1 pfnCreateImmediate = list::zeCommandListCreateImmediate,
        2 pfnDestroy = list::zeCommandListDestroy, 3 pfnClose = list::zeCommandListClose,
        4 pfnReset = list::zeCommandListReset,
        5 pfnAppendWriteGlobalTimestamp = list::zeCommandListAppendWriteGlobalTimestamp,
        6 pfnAppendBarrier = list::zeCommandListAppendBarrier,
        7 pfnAppendMemoryRangesBarrier = list::zeCommandListAppendMemoryRangesBarrier,
        8 pfnAppendMemoryCopy = list::zeCommandListAppendMemoryCopy,
        9 pfnAppendMemoryFill = list::zeCommandListAppendMemoryFill,
        10 pfnAppendMemoryCopyRegion = list::zeCommandListAppendMemoryCopyRegion,
        16 pfnAppendMemoryPrefetch = list::zeCommandListAppendMemoryPrefetch,
        17 pfnAppendMemAdvise = list::zeCommandListAppendMemAdvise,
        18 pfnAppendSignalEvent = list::zeCommandListAppendSignalEvent,
        19 pfnAppendWaitOnEvents = list::zeCommandListAppendWaitOnEvents,
        20 pfnAppendEventReset = list::zeCommandListAppendEventReset,
        21 pfnAppendQueryKernelTimestamps = list::zeCommandListAppendQueryKernelTimestamps,
        22 pfnAppendLaunchKernel = kernel::zeCommandListAppendLaunchKernel,
        23 pfnAppendLaunchCooperativeKernel = kernel::zeCommandListAppendLaunchCooperativeKernel,
        28 pfnHostSynchronize = list::zeCommandListHostSynchronize,
        29 pfnGetDeviceHandle = list::zeCommandListGetDeviceHandle,
        30 pfnGetContextHandle = list::zeCommandListGetContextHandle,
        31 pfnGetOrdinal = list::zeCommandListGetOrdinal, 33 pfnIsImmediate = list::zeCommandListIsImmediate,
    }
    zeGetCommandListExpProcAddrTable ze_command_list_exp_dditable_t {
        1 pfnImmediateAppendCommandListsExp = list::zeCommandListImmediateAppendCommandListsExp,
    }
    zeGetEventPoolProcAddrTable ze_event_pool_dditable_t {
        0 pfnCreate = event::zeEventPoolCreate, 1 pfnDestroy = event::zeEventPoolDestroy,
    }
    zeGetEventProcAddrTable ze_event_dditable_t {
        0 pfnCreate = event::zeEventCreate, 1 pfnDestroy = event::zeEventDestroy,
        2 pfnHostSignal = event::zeEventHostSignal, 3 pfnHostSynchronize = event::zeEventHostSynchronize,
        4 pfnQueryStatus = event::zeEventQueryStatus, 5 pfnHostReset = event::zeEventHostReset,
        6 pfnQueryKernelTimestamp = event::zeEventQueryKernelTimestamp, 8 pfnGetEventPool = event::zeEventGetEventPool,
    }
    zeGetFenceProcAddrTable ze_fence_dditable_t {
        0 pfnCreate = event::zeFenceCreate, 1 pfnDestroy = event::zeFenceDestroy,
        2 pfnHostSynchronize = event::zeFenceHostSynchronize, 3 pfnQueryStatus = event::zeFenceQueryStatus,
        4 pfnReset = event::zeFenceReset,
    }
    zeGetModuleProcAddrTable ze_module_dditable_t {
        0 pfnCreate = module::zeModuleCreate, 1 pfnDestroy = module::zeModuleDestroy,
        2 pfnDynamicLink = module::zeModuleDynamicLink, 3 pfnGetNativeBinary = module::zeModuleGetNativeBinary,
        4 pfnGetGlobalPointer = module::zeModuleGetGlobalPointer, 5 pfnGetKernelNames = module::zeModuleGetKernelNames,
        6 pfnGetProperties = module::zeModuleGetProperties,
    }
    zeGetModuleBuildLogProcAddrTable ze_module_build_log_dditable_t {
        0 pfnDestroy = module::zeModuleBuildLogDestroy, 1 pfnGetString = module::zeModuleBuildLogGetString,
    }
    zeGetKernelProcAddrTable ze_kernel_dditable_t {
        0 pfnCreate = kernel::zeKernelCreate, 1 pfnDestroy = kernel::zeKernelDestroy,
        2 pfnSetCacheConfig = kernel::zeKernelSetCacheConfig, 3 pfnSetGroupSize = kernel::zeKernelSetGroupSize,
        4 pfnSuggestGroupSize = kernel::zeKernelSuggestGroupSize,
        5 pfnSuggestMaxCooperativeGroupCount = kernel::zeKernelSuggestMaxCooperativeGroupCount,
        6 pfnSetArgumentValue = kernel::zeKernelSetArgumentValue,
        7 pfnSetIndirectAccess = kernel::zeKernelSetIndirectAccess,
        8 pfnGetIndirectAccess = kernel::zeKernelGetIndirectAccess,
        9 pfnGetSourceAttributes = kernel::zeKernelGetSourceAttributes,
        10 pfnGetProperties = kernel::zeKernelGetProperties, 11 pfnGetName = kernel::zeKernelGetName,
    }
    zeGetKernelExpProcAddrTable ze_kernel_exp_dditable_t {
        0 pfnSetGlobalOffsetExp = kernel::zeKernelSetGlobalOffsetExp,
    }
    zesGetGlobalProcAddrTable zes_global_dditable_t { 0 pfnInit = sysman::zesInit }
    zesGetDriverProcAddrTable zes_driver_dditable_t { 2 pfnGet = sysman::zesDriverGet }
    zesGetDriverExpProcAddrTable zes_driver_exp_dditable_t {
        0 pfnGetDeviceByUuidExp = sysman::zesDriverGetDeviceByUuidExp,
    }
    zesGetDeviceProcAddrTable zes_device_dditable_t {
        0 pfnGetProperties = sysman::zesDeviceGetProperties, 4 pfnPciGetProperties = sysman::zesDevicePciGetProperties,
        16 pfnEnumMemoryModules = sysman::zesDeviceEnumMemoryModules, 29 pfnGet = sysman::zesDeviceGet,
    }
    zesGetMemoryProcAddrTable zes_memory_dditable_t {
        0 pfnGetProperties = sysman::zesMemoryGetProperties, 1 pfnGetState = sysman::zesMemoryGetState,
    }
}

macro_rules! empty_tables {
    ($($export:ident)*) => { $(
        /// Nothing of this table is there; the loader insists that it can be asked for.
        #[unsafe(no_mangle)]
        pub extern "C" fn $export(_version: u32, _table: *mut c_void) -> Outcome {
            SUCCESS
        }
    )* };
}

empty_tables! {
    zeGetDeviceExpProcAddrTable zeGetDriverExpProcAddrTable zeGetEventExpProcAddrTable zeGetExecutableGraphProcAddrTable
    zeGetFabricEdgeExpProcAddrTable zeGetFabricVertexExpProcAddrTable zeGetGraphProcAddrTable
    zeGetImageExpProcAddrTable zeGetImageProcAddrTable zeGetMemExpProcAddrTable zeGetPhysicalMemProcAddrTable
    zeGetRTASBuilderExpProcAddrTable zeGetRTASBuilderProcAddrTable zeGetRTASParallelOperationExpProcAddrTable
    zeGetRTASParallelOperationProcAddrTable zeGetSamplerProcAddrTable zeGetVirtualMemProcAddrTable
    zelGetTracerApiProcAddrTable zerGetGlobalProcAddrTable
    zesGetDeviceExpProcAddrTable zesGetDiagnosticsProcAddrTable zesGetEngineProcAddrTable
    zesGetFabricPortProcAddrTable zesGetFanProcAddrTable zesGetFirmwareExpProcAddrTable zesGetFirmwareProcAddrTable
    zesGetFrequencyProcAddrTable zesGetLedProcAddrTable zesGetOverclockProcAddrTable
    zesGetPerformanceFactorProcAddrTable zesGetPowerProcAddrTable zesGetPsuProcAddrTable zesGetRasExpProcAddrTable
    zesGetRasProcAddrTable zesGetSchedulerProcAddrTable zesGetStandbyProcAddrTable zesGetTemperatureProcAddrTable
    zesGetVFManagementExpProcAddrTable
    zetGetCommandListExpProcAddrTable zetGetCommandListProcAddrTable zetGetContextProcAddrTable
    zetGetDebugProcAddrTable zetGetDeviceExpProcAddrTable zetGetDeviceProcAddrTable zetGetKernelProcAddrTable
    zetGetMetricDecoderExpProcAddrTable zetGetMetricExpProcAddrTable zetGetMetricGroupExpProcAddrTable
    zetGetMetricGroupProcAddrTable zetGetMetricProcAddrTable zetGetMetricProgrammableExpProcAddrTable
    zetGetMetricQueryPoolProcAddrTable zetGetMetricQueryProcAddrTable zetGetMetricStreamerProcAddrTable
    zetGetMetricTracerExpProcAddrTable zetGetModuleProcAddrTable zetGetTracerExpProcAddrTable
}

#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderInit() -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeLoaderGetTracingHandle() -> usize {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderGetContext() -> usize {
    0
}

fn write_version(it: &mut zel_component_version_t) {
    write_text(&mut it.component_name, "loader");
    it.spec_version = device::API_VERSION;
    it.component_lib_version = zel_version_t { major: 1, minor: 28, patch: 0 };
}

#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderGetVersions(count: &mut usize, into: *mut zel_component_version_t) -> Outcome {
    // SAFETY: the caller's promise: room for `count` structures if there is a place for them at all.
    match unsafe { into.as_mut() } {
        None => *count = 1,
        Some(it) if *count > 0 => write_version(it),
        Some(_) => {}
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderGetVersionsInternal(
    count: &mut usize,
    into: *mut zel_component_version_t,
) -> Outcome {
    zelLoaderGetVersions(count, into)
}

#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderGetVersion(it: &mut zel_component_version_t) -> Outcome {
    write_version(it);
    SUCCESS
}

/// The loader's handles are the driver's.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderTranslateHandle(_kind: u32, given: usize, into: &mut usize) -> Outcome {
    *into = given;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderTranslateHandleInternal(kind: u32, given: usize, into: &mut usize) -> Outcome {
    zelLoaderTranslateHandle(kind, given, into)
}

/// The one driver is always to be used. Older adapters ask; what they pass need not be looked at.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderDriverCheck() -> Outcome {
    SUCCESS
}
