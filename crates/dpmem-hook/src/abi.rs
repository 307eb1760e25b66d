//! The part of the Unified Runtime's C ABI that dpmem touches, written by hand from the public specification (1.0).
//!
//! Handles are opaque addresses. Flags and enumerations are plain integers, because a newer runtime may pass values
//! that this file doesn't know.

use std::ffi::c_void;

/// Any of the runtime's object handles.
pub(crate) type Handle = *mut c_void;
/// A pointer to memory of the program.
pub(crate) type Pointer = *mut c_void;
/// `ur_result_t`.
pub(crate) type UrResult = i32;
/// What stands between an asynchronous call's own arguments and its end: count, list, and place for its event.
pub(crate) type WaitList = *const Handle;

/// `UR_RESULT_SUCCESS`.
pub(crate) const SUCCESS: UrResult = 0;
/// `UR_RESULT_ERROR_INVALID_VALUE`, which a probing stub answers.
pub(crate) const INVALID_VALUE: UrResult = 4;

/// `UR_RESULT_ERROR_OUT_OF_HOST_MEMORY`.
pub(crate) const OUT_OF_HOST_MEMORY: UrResult = 38;
/// `UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY`, which a request beyond a limit is answered with.
pub(crate) const OUT_OF_DEVICE_MEMORY: UrResult = 39;
/// `UR_RESULT_ERROR_OUT_OF_RESOURCES`.
pub(crate) const OUT_OF_RESOURCES: UrResult = 40;
/// `UR_RESULT_ERROR_INVALID_SIZE`.
pub(crate) const INVALID_SIZE: UrResult = 49;
/// `UR_RESULT_ERROR_INVALID_USM_SIZE`.
pub(crate) const INVALID_USM_SIZE: UrResult = 64;
/// `UR_RESULT_ERROR_INVALID_BUFFER_SIZE`, `UR_RESULT_ERROR_MEM_OBJECT_ALLOCATION_FAILURE`,
/// `UR_RESULT_ERROR_UNSUPPORTED_SIZE`, `UR_RESULT_ERROR_OBJECT_ALLOCATION_FAILURE`.
const OTHER_SHORTAGES: [UrResult; 4] = [10, 35, 50, 65];

/// Whether a request for memory that was answered so failed because there is not that much, and not for something else
/// about it, such as an alignment. Adapters answer differently: a full device is [`OUT_OF_RESOURCES`] with OpenCL,
/// [`OUT_OF_DEVICE_MEMORY`] with Level Zero and [`OUT_OF_HOST_MEMORY`] with CUDA; what is larger than a single
/// allocation may be is [`INVALID_USM_SIZE`] with the first two.
pub(crate) fn is_shortage(result: UrResult) -> bool {
    matches!(
        result,
        OUT_OF_HOST_MEMORY | OUT_OF_DEVICE_MEMORY | OUT_OF_RESOURCES | INVALID_SIZE | INVALID_USM_SIZE
    ) || OTHER_SHORTAGES.contains(&result)
}

/// `UR_MEM_FLAG_USE_HOST_POINTER | UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER`: the buffer takes its data from the host.
pub(crate) const MEM_FLAGS_FROM_HOST: u32 = 1 << 3 | 1 << 5;

/// `UR_USM_ALLOC_INFO_TYPE` and the values it answers.
pub(crate) const USM_ALLOC_INFO_TYPE: u32 = 0;
pub(crate) const USM_ALLOC_INFO_BASE: u32 = 1;
pub(crate) const USM_ALLOC_INFO_SIZE: u32 = 2;
pub(crate) const USM_ALLOC_INFO_DEVICE: u32 = 3;
pub(crate) const USM_TYPE_UNKNOWN: u32 = 0;
pub(crate) const USM_TYPE_HOST: u32 = 1;
pub(crate) const USM_TYPE_DEVICE: u32 = 2;
pub(crate) const USM_TYPE_SHARED: u32 = 3;

/// `UR_CONTEXT_INFO_NUM_DEVICES`, `UR_CONTEXT_INFO_DEVICES`, `UR_CONTEXT_INFO_REFERENCE_COUNT`.
pub(crate) const CONTEXT_INFO_NUM_DEVICES: u32 = 0;
pub(crate) const CONTEXT_INFO_DEVICES: u32 = 1;
pub(crate) const CONTEXT_INFO_REFERENCE_COUNT: u32 = 2;
/// `UR_QUEUE_INFO_CONTEXT`, `UR_QUEUE_INFO_DEVICE`.
pub(crate) const QUEUE_INFO_CONTEXT: u32 = 0;
pub(crate) const QUEUE_INFO_DEVICE: u32 = 1;
/// `UR_EVENT_INFO_COMMAND_EXECUTION_STATUS`, and the answer of an event that has ended well; an error is negative.
pub(crate) const EVENT_INFO_STATUS: u32 = 3;
pub(crate) const EVENT_COMPLETE: i32 = 0;
/// `UR_DEVICE_INFO_MAX_MEM_ALLOC_SIZE`, `UR_DEVICE_INFO_GLOBAL_MEM_SIZE`.
pub(crate) const DEVICE_INFO_MAX_ALLOC: u32 = 28;
pub(crate) const DEVICE_INFO_GLOBAL_MEM: u32 = 46;
/// `UR_DEVICE_INFO_TYPE`, and what it answers for a CPU.
pub(crate) const DEVICE_INFO_TYPE: u32 = 0;
pub(crate) const DEVICE_TYPE_CPU: u32 = 4;
/// `UR_DEVICE_INFO_PARENT_DEVICE`, and what describes a device.
pub(crate) const DEVICE_INFO_PARENT_DEVICE: u32 = 75;
pub(crate) const DEVICE_INFO_VENDOR_ID: u32 = 1;
pub(crate) const DEVICE_INFO_DEVICE_ID: u32 = 2;
pub(crate) const DEVICE_INFO_GLOBAL_MEM_FREE: u32 = 47;
pub(crate) const DEVICE_INFO_HOST_UNIFIED_MEMORY: u32 = 53;
pub(crate) const DEVICE_INFO_NAME: u32 = 66;
pub(crate) const DEVICE_INFO_UUID: u32 = 88;
pub(crate) const DEVICE_INFO_PCI_ADDRESS: u32 = 89;

/// `ur_buffer_properties_t`.
#[repr(C)]
pub(crate) struct BufferProperties {
    structure: u32,
    next: Pointer,
    /// The host memory that the buffer starts with.
    pub(crate) host: Pointer,
}

/// `ur_rect_offset_t` and `ur_rect_region_t`: three sizes, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Rect {
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
}

impl Rect {
    /// Bytes of a region of this size.
    pub(crate) fn bytes(self) -> u64 {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }
}

/// `ur_usm_desc_t`.
#[repr(C)]
pub(crate) struct UsmDescriptor {
    pub(crate) structure: u32,
    pub(crate) next: *const DescriptorExtension,
    pub(crate) hints: u32,
    pub(crate) align: u32,
}

/// `ur_usm_host_desc_t`, `ur_usm_device_desc_t`: what may hang on a [`UsmDescriptor`]. Others begin alike as far as `next`.
#[repr(C)]
pub(crate) struct DescriptorExtension {
    pub(crate) structure: u32,
    pub(crate) next: *const DescriptorExtension,
    pub(crate) flags: u32,
}

/// `UR_STRUCTURE_TYPE_USM_HOST_DESC`, `UR_STRUCTURE_TYPE_USM_DEVICE_DESC`.
pub(crate) const USM_HOST_DESCRIPTOR: u32 = 8;
pub(crate) const USM_DEVICE_DESCRIPTOR: u32 = 9;

/// The stack where arguments beyond the sixth are, of functions whose number of arguments differs between versions. It
/// goes through as it is; more than any of them has.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Spill([usize; 16]);
