//! The one table of the runtime's functions that dpmem knows.
//!
//! A line declares the name in the runtime, its C signature, and the shim that takes its place; or `called` where dpmem
//! only calls it; or `passed`, without a signature, where a stub of machine code passes its arguments on unseen. The enumeration, the slots' originals, the typed calls and the coverage test all derive from it. To
//! add a function, add a line here and a shim in [`crate::shims`].

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::{Handle, Pointer, Rect, UrResult, WaitList};

macro_rules! functions {
    ($( $variant:ident $call:ident $name:literal $role:tt ($($argument:ty),* $(,)?); )*) => {
        /// A function of the runtime.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub(crate) enum Function { $($variant),* }

        impl Function {
            /// All of them, in the order of their numbers.
            pub(crate) const ALL: &'static [Function] = &[$(Function::$variant),*];

            /// Its name in the runtime.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }

            /// The address of the shim that takes its place, if one does.
            pub(crate) fn shim(self) -> Option<usize> {
                match self { $(Function::$variant => functions!(@shim $variant $call $role ($($argument),*))),* }
            }
        }

        /// The runtime's own functions, by number. Stubs of machine code read them, too.
        pub(crate) static ORIGINALS: [AtomicUsize; Function::ALL.len()] =
            [const { AtomicUsize::new(0) }; Function::ALL.len()];

        /// The runtime's own functions, with their types.
        pub(crate) mod original {
            use super::*;
            $(
                /// The function that a shim stands in for. It is known before the shim can be reached.
                #[allow(dead_code, reason = "nobody calls what is only passed on")]
                pub(crate) fn $call() -> Option<unsafe extern "C" fn($($argument),*) -> UrResult> {
                    let address = ORIGINALS[Function::$variant as usize].load(Ordering::Acquire);
                    // SAFETY: the address was taken from the slot of exactly this function, whose signature the
                    // specification fixes; 0 becomes `None`.
                    unsafe { std::mem::transmute(address) }
                }
            )*
        }
    };
    (@shim $variant:ident $call:ident hooked ($($argument:ty),*)) => {{
        let shim: unsafe extern "C" fn($($argument),*) -> UrResult = crate::shims::$call;
        Some(shim as usize)
    }};
    (@shim $variant:ident $call:ident called ($($argument:ty),*)) => { None };
    (@shim $variant:ident $call:ident passed ($($argument:ty),*)) => { Some(crate::launches::stub(Function::$variant)) };
}

functions! {
    UsmHostAlloc usm_host_alloc "urUSMHostAlloc" hooked
        (Handle, Pointer, Handle, usize, *mut Pointer);
    UsmDeviceAlloc usm_device_alloc "urUSMDeviceAlloc" hooked
        (Handle, Handle, Pointer, Handle, usize, *mut Pointer);
    UsmSharedAlloc usm_shared_alloc "urUSMSharedAlloc" hooked
        (Handle, Handle, Pointer, Handle, usize, *mut Pointer);
    UsmFree usm_free "urUSMFree" hooked
        (Handle, Pointer);
    UsmAllocInfo usm_alloc_info "urUSMGetMemAllocInfo" called
        (Handle, Pointer, u32, usize, Pointer, *mut usize);
    UsmPitchedAlloc usm_pitched_alloc "urUSMPitchedAllocExp" hooked
        (Handle, Handle, Pointer, Handle, usize, usize, usize, *mut Pointer, *mut usize);
    EnqueueHostAlloc enqueue_host_alloc "urEnqueueUSMHostAllocExp" hooked
        (Handle, Handle, usize, Pointer, u32, WaitList, *mut Pointer, *mut Handle);
    EnqueueDeviceAlloc enqueue_device_alloc "urEnqueueUSMDeviceAllocExp" hooked
        (Handle, Handle, usize, Pointer, u32, WaitList, *mut Pointer, *mut Handle);
    EnqueueSharedAlloc enqueue_shared_alloc "urEnqueueUSMSharedAllocExp" hooked
        (Handle, Handle, usize, Pointer, u32, WaitList, *mut Pointer, *mut Handle);
    EnqueueFree enqueue_free "urEnqueueUSMFreeExp" hooked
        (Handle, Handle, Pointer, u32, WaitList, *mut Handle);
    EnqueueMemcpy enqueue_memcpy "urEnqueueUSMMemcpy" hooked
        (Handle, bool, Pointer, Pointer, usize, u32, WaitList, *mut Handle);
    EnqueueMemcpy2d enqueue_memcpy_2d "urEnqueueUSMMemcpy2D" hooked
        (Handle, bool, Pointer, usize, Pointer, usize, usize, usize, u32, WaitList, *mut Handle);
    ContextMemcpy context_memcpy "urUSMContextMemcpyExp" hooked
        (Handle, Pointer, Pointer, usize);
    EnqueueFill enqueue_fill "urEnqueueUSMFill" hooked
        (Handle, Pointer, usize, Pointer, usize, u32, WaitList, *mut Handle);
    KernelLaunch kernel_launch "urEnqueueKernelLaunch" passed ();
    KernelLaunchWithArguments kernel_launch_with_arguments "urEnqueueKernelLaunchWithArgsExp" passed ();
    BufferCreate buffer_create "urMemBufferCreate" hooked
        (Handle, u32, usize, Pointer, *mut Handle);
    BufferRead buffer_read "urEnqueueMemBufferRead" hooked
        (Handle, Handle, bool, usize, usize, Pointer, u32, WaitList, *mut Handle);
    BufferWrite buffer_write "urEnqueueMemBufferWrite" hooked
        (Handle, Handle, bool, usize, usize, Pointer, u32, WaitList, *mut Handle);
    BufferCopy buffer_copy "urEnqueueMemBufferCopy" hooked
        (Handle, Handle, Handle, usize, usize, usize, u32, WaitList, *mut Handle);
    BufferReadRect buffer_read_rect "urEnqueueMemBufferReadRect" hooked
        (Handle, Handle, bool, Rect, Rect, Rect, usize, usize, usize, usize, Pointer, u32, WaitList, *mut Handle);
    BufferWriteRect buffer_write_rect "urEnqueueMemBufferWriteRect" hooked
        (Handle, Handle, bool, Rect, Rect, Rect, usize, usize, usize, usize, Pointer, u32, WaitList, *mut Handle);
    BufferCopyRect buffer_copy_rect "urEnqueueMemBufferCopyRect" hooked
        (Handle, Handle, Handle, Rect, Rect, Rect, usize, usize, usize, usize, u32, WaitList, *mut Handle);
    ContextCreate context_create "urContextCreate" hooked
        (u32, *const Handle, Pointer, *mut Handle);
    ContextAdopt context_adopt "urContextCreateWithNativeHandle" hooked
        (Handle, Handle, u32, *const Handle, Pointer, *mut Handle);
    ContextRelease context_release "urContextRelease" hooked
        (Handle);
    ContextInfo context_info "urContextGetInfo" called
        (Handle, u32, usize, Pointer, *mut usize);
    QueueCreate queue_create "urQueueCreate" hooked
        (Handle, Handle, Pointer, *mut Handle);
    QueueAdopt queue_adopt "urQueueCreateWithNativeHandle" hooked
        (Handle, Handle, Handle, Pointer, *mut Handle);
    QueueRelease queue_release "urQueueRelease" hooked
        (Handle);
    QueueInfo queue_info "urQueueGetInfo" called
        (Handle, u32, usize, Pointer, *mut usize);
    DeviceInfo device_info "urDeviceGetInfo" hooked
        (Handle, u32, usize, Pointer, *mut usize);
}

impl Function {
    /// The functions without which nothing true could be said.
    pub(crate) const ESSENTIAL: [Function; 5] = [
        Function::UsmHostAlloc,
        Function::UsmDeviceAlloc,
        Function::UsmSharedAlloc,
        Function::UsmFree,
        Function::EnqueueMemcpy,
    ];

    /// Remembers the runtime's own function. Must happen before its shim can be reached.
    pub(crate) fn set_original(self, address: usize) {
        ORIGINALS[self as usize].store(address, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_name_and_a_number_of_its_own() {
        let mut names: Vec<_> = Function::ALL.iter().map(|f| f.name()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Function::ALL.len());
        assert!(Function::ALL.iter().enumerate().all(|(n, &f)| f as usize == n));
    }

    #[test]
    fn the_essential_functions_are_hooked_by_shims_of_their_own() {
        let mut shims: Vec<_> = Function::ALL.iter().filter_map(|f| f.shim()).collect();
        shims.sort();
        shims.dedup();
        assert_eq!(shims.len(), Function::ALL.iter().filter(|f| f.shim().is_some()).count());
        assert!(Function::ESSENTIAL.iter().all(|f| f.shim().is_some()));
    }
}
