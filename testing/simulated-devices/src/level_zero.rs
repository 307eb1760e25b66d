//! The Level Zero part: stands in for `libze_loader.so.1`, with a driver behind it.
//!
//! SYCL's adapters hold most of the loader themselves and take tables of functions from the library ([`loader`]); other
//! programs look the functions up by name, so all of them are exported. A device's address is its handle; contexts,
//! lists, events, modules and kernels are boxes of ours, which live until they are destroyed. Kernels are run by the
//! OpenCL CPU runtime ([`runtime`]). What is ordered is done before the call returns, or, in a list that is not immediate,
//! when the list is executed.
//!
//! Names of functions and types are those of the specification. Handles are references to what they stand for; the
//! specification has the caller keep them alive while work uses them, hence `'static`.
#![allow(non_snake_case, missing_docs)]

pub mod abi;
pub mod device;
pub mod event;
pub mod kernel;
pub mod list;
pub mod loader;
pub mod memory;
pub mod module;
pub mod runtime;
pub mod spirv;
pub mod sysman;

/// `ze_result_t`.
pub type Outcome = u32;

macro_rules! values {
    ($all:ident $($name:ident $ze:ident = $value:literal;)*) => {
        $(pub(crate) const $name: u32 = $value;)*

        /// Their names in the specification, for the layout test.
        pub const $all: &[(&str, u32)] = &[$((stringify!($ze), $name)),*];
    };
}
pub(crate) use values;

values! { OUTCOMES
    SUCCESS ZE_RESULT_SUCCESS = 0;
    NOT_READY ZE_RESULT_NOT_READY = 1;
    OUT_OF_HOST_MEMORY ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY = 0x7000_0002;
    OUT_OF_DEVICE_MEMORY ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY = 0x7000_0003;
    MODULE_BUILD_FAILURE ZE_RESULT_ERROR_MODULE_BUILD_FAILURE = 0x7000_0004;
    UNINITIALIZED ZE_RESULT_ERROR_UNINITIALIZED = 0x7800_0001;
    UNSUPPORTED_FEATURE ZE_RESULT_ERROR_UNSUPPORTED_FEATURE = 0x7800_0003;
    INVALID_ARGUMENT ZE_RESULT_ERROR_INVALID_ARGUMENT = 0x7800_0004;
    INVALID_SIZE ZE_RESULT_ERROR_INVALID_SIZE = 0x7800_0008;
    UNSUPPORTED_SIZE ZE_RESULT_ERROR_UNSUPPORTED_SIZE = 0x7800_0009;
    INVALID_GLOBAL_NAME ZE_RESULT_ERROR_INVALID_GLOBAL_NAME = 0x7800_0010;
    INVALID_KERNEL_NAME ZE_RESULT_ERROR_INVALID_KERNEL_NAME = 0x7800_0011;
    INVALID_KERNEL_ARGUMENT_INDEX ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX = 0x7800_0015;
    UNKNOWN ZE_RESULT_ERROR_UNKNOWN = 0x7fff_fffe;
}

/// Answers with a list in Level Zero's manner: asked with 0, how many there are; else as many as were asked for.
pub(crate) fn list<T: Copy>(count: &mut u32, into: *mut T, all: &[T]) -> Outcome {
    if *count == 0 || into.is_null() {
        *count = all.len() as u32;
    } else {
        *count = (*count).min(all.len() as u32);
        crate::foreign::fill(into, *count as usize, all);
    }
    SUCCESS
}

/// An object that stays until `destroyed`.
pub(crate) fn created<T>(into: &mut *mut T, object: T) -> Outcome {
    *into = Box::into_raw(Box::new(object));
    SUCCESS
}

/// Lets go of an object that `created` made.
pub(crate) fn destroyed<T>(object: *mut T) -> Outcome {
    // SAFETY: the caller's promise: a handle that `created` gave out, not destroyed before and not used after.
    drop(unsafe { Box::from_raw(object) });
    SUCCESS
}
