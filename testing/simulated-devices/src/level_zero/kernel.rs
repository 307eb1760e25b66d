//! Kernels: their parameters, their extent, and launching them.

use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::abi::{ze_group_count_t, ze_kernel_desc_t, ze_kernel_properties_t};
use super::event::Event;
use super::list::{Events, List};
use super::module::Module;
use super::runtime::{Argument, Extent, Handle, runtime};
use super::spirv::Parameter;
use super::{
    INVALID_ARGUMENT, INVALID_KERNEL_ARGUMENT_INDEX, INVALID_KERNEL_NAME, Outcome, SUCCESS, UNKNOWN, created,
    destroyed,
};
use crate::foreign::{fill, given};

/// A kernel of a module.
pub struct Kernel {
    kernel: Handle,
    name: CString,
    parameters: Vec<Parameter>,
    state: Mutex<State>,
}

struct State {
    arguments: Vec<Option<Argument>>,
    group: [usize; 3],
    offset: [usize; 3],
}

impl Kernel {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if let Some(runtime) = runtime() {
            runtime.release_kernel(self.kernel);
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelCreate(
    module: &Module,
    desc: &ze_kernel_desc_t,
    into: &mut *mut Kernel,
) -> Outcome {
    // SAFETY: the caller's promise: a C string.
    let name = unsafe { CStr::from_ptr(desc.pKernelName) };
    let parameters = name.to_str().ok().and_then(|name| module.parameters.get(name));
    let kernel = runtime().and_then(|runtime| runtime.kernel(module.program, name));
    let (Some(parameters), Some(kernel)) = (parameters, kernel) else { return INVALID_KERNEL_NAME };
    let state = State { arguments: vec![None; parameters.len()], group: [1; 3], offset: [0; 3] };
    let parameters = parameters.clone();
    created(into, Kernel { kernel, name: name.to_owned(), parameters, state: Mutex::new(state) })
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelDestroy(kernel: *mut Kernel) -> Outcome {
    destroyed(kernel)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelSetGroupSize(kernel: &Kernel, x: u32, y: u32, z: u32) -> Outcome {
    kernel.state().group = [x, y, z].map(|size| size as usize);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelSetGlobalOffsetExp(kernel: &Kernel, x: u32, y: u32, z: u32) -> Outcome {
    kernel.state().offset = [x, y, z].map(|offset| offset as usize);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelSuggestGroupSize(
    _kernel: &Kernel,
    x: u32,
    y: u32,
    z: u32,
    group_x: &mut u32,
    group_y: &mut u32,
    group_z: &mut u32,
) -> Outcome {
    let mut room = 256;
    for (size, group) in [(x, group_x), (y, group_y), (z, group_z)] {
        // The largest power of two that divides the size and fits.
        *group = (1 << size.trailing_zeros().min(31)).min(room);
        room /= *group;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelSuggestMaxCooperativeGroupCount(_kernel: &Kernel, count: &mut u32) -> Outcome {
    *count = 16;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelSetArgumentValue(
    kernel: &Kernel,
    index: u32,
    bytes: usize,
    value: *const u8,
) -> Outcome {
    let index = index as usize;
    let Some(parameter) = kernel.parameters.get(index) else { return INVALID_KERNEL_ARGUMENT_INDEX };
    let value = given(value, bytes);
    let argument = match parameter {
        Parameter::Local => Argument::Local(bytes),
        Parameter::Pointer => match value.try_into() {
            Ok(address) => Argument::Pointer(usize::from_ne_bytes(address)),
            Err(_) if value.is_empty() => Argument::Pointer(0),
            Err(_) => return INVALID_ARGUMENT,
        },
        // SYCL's adapter passes no value where all its bytes are zero.
        Parameter::Value if value.is_empty() => Argument::Value(vec![0; bytes]),
        Parameter::Value => Argument::Value(value.to_vec()),
    };
    kernel.state().arguments[index] = Some(argument);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelSetIndirectAccess(_kernel: &Kernel, _flags: u32) -> Outcome {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelGetIndirectAccess(_kernel: &Kernel, flags: &mut u32) -> Outcome {
    const HOST_DEVICE_SHARED: u32 = 0b111;
    *flags = HOST_DEVICE_SHARED;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelSetCacheConfig(_kernel: &Kernel, _flags: u32) -> Outcome {
    SUCCESS
}

/// Kernels have no attributes: an empty text.
#[unsafe(no_mangle)]
pub extern "C" fn zeKernelGetSourceAttributes(
    _kernel: &Kernel,
    bytes: &mut u32,
    into: Option<&mut *mut c_char>,
) -> Outcome {
    *bytes = 1;
    if let Some(into) = into {
        fill(*into, 1, &[0]);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelGetName(kernel: &Kernel, bytes: &mut usize, into: *mut u8) -> Outcome {
    let name = kernel.name.as_bytes_with_nul();
    fill(into, name.len(), name);
    *bytes = name.len();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeKernelGetProperties(kernel: &Kernel, it: &mut ze_kernel_properties_t) -> Outcome {
    let (stype, next) = (it.stype, it.pNext);
    *it = ze_kernel_properties_t {
        stype,
        pNext: next,
        numKernelArgs: kernel.parameters.len() as u32,
        requiredGroupSizeX: 0,
        requiredGroupSizeY: 0,
        requiredGroupSizeZ: 0,
        requiredNumSubGroups: 0,
        requiredSubgroupSize: 0,
        maxSubgroupSize: 32,
        maxNumSubgroups: 64,
        localMemSize: 0,
        privateMemSize: 0,
        spillMemSize: 0,
        uuid: [1; 32],
    };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendLaunchKernel(
    list: &List,
    kernel: &'static Kernel,
    groups: &ze_group_count_t,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    // Arguments and sizes are those of now; the kernel may be given others before the list is executed.
    let (arguments, extent) = {
        let state = kernel.state();
        let Some(arguments) = state.arguments.iter().cloned().collect::<Option<Vec<Argument>>>() else {
            return INVALID_ARGUMENT;
        };
        let groups = [groups.groupCountX, groups.groupCountY, groups.groupCountZ];
        let global = std::array::from_fn(|axis| state.group[axis] * groups[axis] as usize);
        (arguments, Extent { offset: state.offset, global, local: state.group })
    };
    list.append(signal, count, waits, move || {
        let Some(runtime) = runtime() else { return UNKNOWN };
        match runtime.run(kernel.kernel, &arguments, extent) {
            Ok(()) => SUCCESS,
            Err(_) => UNKNOWN,
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn zeCommandListAppendLaunchCooperativeKernel(
    list: &List,
    kernel: &'static Kernel,
    groups: &ze_group_count_t,
    signal: Option<&'static Event>,
    count: u32,
    waits: Events,
) -> Outcome {
    zeCommandListAppendLaunchKernel(list, kernel, groups, signal, count, waits)
}
