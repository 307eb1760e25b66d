//! The functions below the layer, by their place in the loader's dispatch table.
//!
//! The table's order is part of the ICD interface: it only ever grows at its end.

use std::ffi::c_char;

use super::{Handle, Status};

/// A place in the dispatch table and the name of the function there.
#[derive(Clone, Copy)]
pub struct Slot(pub usize, pub &'static str);

/// The dispatch table below.
pub struct Target(Vec<usize>);

/// Notifies of the end of a build.
pub type Notify = usize;

macro_rules! functions {
    ($($index:literal $slot:ident $cl:literal $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {
        $(#[doc = $cl] pub const $slot: Slot = Slot($index, $cl);)*

        /// All places that are used, for the layout test.
        pub const SLOTS: &[Slot] = &[$($slot),*];

        #[allow(clippy::too_many_arguments)]
        impl Target {
            $(#[doc = $cl] pub fn $name(&self, $($argument: $type),*) -> $result {
                // SAFETY: the loader put a function of this OpenCL signature into this place. It is given arguments that
                // a caller gave us under the same rules, or handles that it handed out itself.
                let function = unsafe {
                    std::mem::transmute::<usize, extern "C" fn($($type),*) -> $result>(self.0[$index])
                };
                function($($argument),*)
            })*
        }
    };
}

functions! {
    0 PLATFORM_IDS "clGetPlatformIDs" platform_ids(room: u32, into: *mut Handle, found: Option<&mut u32>) -> Status;
    1 PLATFORM_INFO "clGetPlatformInfo"
        platform_info(platform: Handle, what: u32, size: usize, into: *mut u8, needed: Option<&mut usize>) -> Status;
    2 DEVICE_IDS "clGetDeviceIDs"
        device_ids(platform: Handle, kinds: u64, room: u32, into: *mut Handle, found: Option<&mut u32>) -> Status;
    3 DEVICE_INFO "clGetDeviceInfo"
        device_info(device: Handle, what: u32, size: usize, into: *mut u8, needed: Option<&mut usize>) -> Status;
    4 CREATE_CONTEXT "clCreateContext"
        create_context(properties: *const isize, count: u32, devices: *const Handle, notify: Notify, user: usize,
                       status: Option<&mut Status>) -> Handle;
    7 RELEASE_CONTEXT "clReleaseContext" release_context(context: Handle) -> Status;
    8 CONTEXT_INFO "clGetContextInfo"
        context_info(context: Handle, what: u32, size: usize, into: *mut u8, needed: Option<&mut usize>) -> Status;
    9 CREATE_QUEUE "clCreateCommandQueue"
        create_queue(context: Handle, device: Handle, properties: u64, status: Option<&mut Status>) -> Handle;
    11 RELEASE_QUEUE "clReleaseCommandQueue" release_queue(queue: Handle) -> Status;
    12 QUEUE_INFO "clGetCommandQueueInfo"
        queue_info(queue: Handle, what: u32, size: usize, into: *mut u8, needed: Option<&mut usize>) -> Status;
    27 PROGRAM_WITH_BINARY "clCreateProgramWithBinary"
        program_with_binary(context: Handle, count: u32, devices: *const Handle, lengths: *const usize,
                            binaries: *const *const u8, statuses: *mut Status, status: Option<&mut Status>) -> Handle;
    30 BUILD_PROGRAM "clBuildProgram"
        build_program(program: Handle, count: u32, devices: *const Handle, options: *const c_char, notify: Notify,
                      user: usize) -> Status;
    32 PROGRAM_INFO "clGetProgramInfo"
        program_info(program: Handle, what: u32, size: usize, into: *mut u8, needed: Option<&mut usize>) -> Status;
    33 BUILD_INFO "clGetProgramBuildInfo"
        build_info(program: Handle, device: Handle, what: u32, size: usize, into: *mut u8,
                   needed: Option<&mut usize>) -> Status;
    40 WORK_GROUP_INFO "clGetKernelWorkGroupInfo"
        work_group_info(kernel: Handle, device: Handle, what: u32, size: usize, into: *mut u8,
                        needed: Option<&mut usize>) -> Status;
    65 EXTENSION "clGetExtensionFunctionAddress" extension(name: *const c_char) -> usize;
    93 CREATE_SUB_DEVICES "clCreateSubDevices"
        create_sub_devices(device: Handle, properties: *const isize, room: u32, into: *mut Handle,
                           found: Option<&mut u32>) -> Status;
    94 RETAIN_DEVICE "clRetainDevice" retain_device(device: Handle) -> Status;
    95 RELEASE_DEVICE "clReleaseDevice" release_device(device: Handle) -> Status;
    98 COMPILE_PROGRAM "clCompileProgram"
        compile_program(program: Handle, count: u32, devices: *const Handle, options: *const c_char, headers: u32,
                        programs: *const Handle, names: *const *const c_char, notify: Notify, user: usize) -> Status;
    99 LINK_PROGRAM "clLinkProgram"
        link_program(context: Handle, count: u32, devices: *const Handle, options: *const c_char, programs: u32,
                     inputs: *const Handle, notify: Notify, user: usize, status: Option<&mut Status>) -> Handle;
    107 PLATFORM_EXTENSION "clGetExtensionFunctionAddressForPlatform"
        platform_extension(platform: Handle, name: *const c_char) -> usize;
    123 CREATE_QUEUE_WITH_PROPERTIES "clCreateCommandQueueWithProperties"
        create_queue_with_properties(context: Handle, device: Handle, properties: *const u64,
                                     status: Option<&mut Status>) -> Handle;
    136 SUB_GROUP_INFO_KHR "clGetKernelSubGroupInfoKHR"
        sub_group_info_khr(kernel: Handle, device: Handle, what: u32, given: usize, input: *const u8, size: usize,
                           into: *mut u8, needed: Option<&mut usize>) -> Status;
    140 DEVICE_AND_HOST_TIMER "clGetDeviceAndHostTimer"
        device_and_host_timer(device: Handle, on_device: *mut u64, on_host: *mut u64) -> Status;
    141 HOST_TIMER "clGetHostTimer" host_timer(device: Handle, on_host: *mut u64) -> Status;
    142 SUB_GROUP_INFO "clGetKernelSubGroupInfo"
        sub_group_info(kernel: Handle, device: Handle, what: u32, given: usize, input: *const u8, size: usize,
                       into: *mut u8, needed: Option<&mut usize>) -> Status;
    143 SET_DEFAULT_QUEUE "clSetDefaultDeviceCommandQueue"
        set_default_queue(context: Handle, device: Handle, queue: Handle) -> Status;
}

impl Target {
    pub(crate) fn new(table: Vec<usize>) -> Self {
        let last = SLOTS.iter().map(|slot| slot.0).max();
        assert!(last < Some(table.len()), "the OpenCL loader is older than OpenCL 2.1");
        Self(table)
    }
}
