//! Programs and kernels: built for the CPU device, once for all simulated devices of a context.

use std::ffi::{CStr, CString, c_char};

use super::context::devices_of;
use super::platform::{real, real_devices};
use super::target::{Notify, Slot};
use super::{Handle, INVALID_VALUE, SUCCESS, Status, answer, answer_handles, target};
use crate::foreign::given;

pub(super) const FUNCTIONS: &[(Slot, *const ())] = &[
    (target::PROGRAM_WITH_BINARY, program_with_binary as *const ()),
    (target::BUILD_PROGRAM, build_program as *const ()),
    (target::COMPILE_PROGRAM, compile_program as *const ()),
    (target::LINK_PROGRAM, link_program as *const ()),
    (target::PROGRAM_INFO, program_info as *const ()),
    (target::BUILD_INFO, build_info as *const ()),
    (target::WORK_GROUP_INFO, work_group_info as *const ()),
    (target::SUB_GROUP_INFO, sub_group_info as *const ()),
    (target::SUB_GROUP_INFO_KHR, sub_group_info_khr as *const ()),
];

/// Build options without those that only Intel's GPU compiler knows.
pub fn cpu_options(options: &str) -> String {
    let known = |word: &&str| !word.starts_with("-ze-") && !word.starts_with("-cl-intel-");
    options.split_whitespace().filter(known).collect::<Vec<_>>().join(" ")
}

fn real_options(options: *const c_char) -> CString {
    let text = if options.is_null() {
        String::new()
    } else {
        // SAFETY: the caller's promise: a C string.
        cpu_options(&unsafe { CStr::from_ptr(options) }.to_string_lossy())
    };
    // It was a C string, so there is no zero in it.
    CString::new(text).unwrap_or_default()
}

/// The array of devices to hand on: null if it was.
fn pointer(devices: &[Handle]) -> *const Handle {
    if devices.is_empty() { std::ptr::null() } else { devices.as_ptr() }
}

extern "C" fn program_with_binary(
    context: Handle,
    count: u32,
    devices: *const Handle,
    lengths: *const usize,
    binaries: *const *const u8,
    statuses: *mut Status,
    status: Option<&mut Status>,
) -> Handle {
    let real = real_devices(given(devices, count as usize));
    target().program_with_binary(
        context,
        real.len() as u32,
        pointer(&real),
        lengths,
        binaries,
        statuses,
        status,
    )
}

extern "C" fn build_program(
    program: Handle,
    count: u32,
    devices: *const Handle,
    options: *const c_char,
    notify: Notify,
    user: usize,
) -> Status {
    let real = real_devices(given(devices, count as usize));
    let options = real_options(options);
    target().build_program(program, real.len() as u32, pointer(&real), options.as_ptr(), notify, user)
}

extern "C" fn compile_program(
    program: Handle,
    count: u32,
    devices: *const Handle,
    options: *const c_char,
    headers: u32,
    programs: *const Handle,
    names: *const *const c_char,
    notify: Notify,
    user: usize,
) -> Status {
    let real = real_devices(given(devices, count as usize));
    let options = real_options(options);
    let (count, devices) = (real.len() as u32, pointer(&real));
    target().compile_program(
        program,
        count,
        devices,
        options.as_ptr(),
        headers,
        programs,
        names,
        notify,
        user,
    )
}

extern "C" fn link_program(
    context: Handle,
    count: u32,
    devices: *const Handle,
    options: *const c_char,
    programs: u32,
    inputs: *const Handle,
    notify: Notify,
    user: usize,
    status: Option<&mut Status>,
) -> Handle {
    let real = real_devices(given(devices, count as usize));
    let options = real_options(options);
    let (count, devices) = (real.len() as u32, pointer(&real));
    target().link_program(context, count, devices, options.as_ptr(), programs, inputs, notify, user, status)
}

extern "C" fn program_info(
    program: Handle,
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    const CONTEXT: u32 = 0x1161;
    const DEVICE_COUNT: u32 = 0x1162;
    const DEVICES: u32 = 0x1163;
    const BINARY_SIZES: u32 = 0x1165;
    const BINARIES: u32 = 0x1166;
    let mut context: Handle = 0;
    target().program_info(program, CONTEXT, size_of::<Handle>(), (&raw mut context).cast(), None);
    let Some(devices) = devices_of(context) else {
        return target().program_info(program, what, size, into, needed);
    };
    match what {
        DEVICE_COUNT => answer(size, into, needed, &(devices.len() as u32).to_ne_bytes()),
        DEVICES => answer_handles(size, into, needed, &devices),
        BINARY_SIZES => {
            let mut one = 0usize;
            match target().program_info(program, what, size_of::<usize>(), (&raw mut one).cast(), None) {
                SUCCESS => answer_handles(size, into, needed, &vec![one; devices.len()]),
                error => error,
            }
        }
        BINARIES => binaries(program, devices.len(), size, into, needed),
        _ => target().program_info(program, what, size, into, needed),
    }
}

/// Writes the one binary to each of the places whose addresses `into` holds.
fn binaries(program: Handle, count: usize, size: usize, into: *mut u8, needed: Option<&mut usize>) -> Status {
    const BINARIES: u32 = 0x1166;
    let bytes = count * size_of::<Handle>();
    if let Some(needed) = needed {
        *needed = bytes;
    }
    if into.is_null() {
        return SUCCESS;
    }
    if size < bytes {
        return INVALID_VALUE;
    }
    let places = given(into.cast::<Handle>(), count);
    let each = places.iter().map(|place| {
        target().program_info(
            program,
            BINARIES,
            size_of::<Handle>(),
            std::ptr::from_ref(place).cast_mut().cast(),
            None,
        )
    });
    each.into_iter().find(|status| *status != SUCCESS).unwrap_or(SUCCESS)
}

extern "C" fn build_info(
    program: Handle,
    device: Handle,
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    target().build_info(program, real(device), what, size, into, needed)
}

extern "C" fn work_group_info(
    kernel: Handle,
    device: Handle,
    what: u32,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    target().work_group_info(kernel, real(device), what, size, into, needed)
}

extern "C" fn sub_group_info(
    kernel: Handle,
    device: Handle,
    what: u32,
    given: usize,
    input: *const u8,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    target().sub_group_info(kernel, real(device), what, given, input, size, into, needed)
}

extern "C" fn sub_group_info_khr(
    kernel: Handle,
    device: Handle,
    what: u32,
    given: usize,
    input: *const u8,
    size: usize,
    into: *mut u8,
    needed: Option<&mut usize>,
) -> Status {
    target().sub_group_info_khr(kernel, real(device), what, given, input, size, into, needed)
}

#[cfg(test)]
mod tests {
    #[test]
    fn options_for_gpus_are_left_out() {
        assert_eq!(
            super::cpu_options(" -ze-opt-level=O2 -cl-mad-enable  -cl-intel-x -g"),
            "-cl-mad-enable -g"
        );
    }
}
