//! The one table of the runtime's functions that dpmem knows.
//!
//! A line declares the name in the runtime, its C signature, and the shim that takes its place, or `called` where dpmem
//! only calls it. The enumeration, the slots' originals, the typed calls and the coverage test all derive from it. To
//! add a function, add a line here and a shim in [`crate::shims`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::abi::{Handle, Pointer, Rect, Spill, UrResult, WaitList};

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
                match self { $(Function::$variant => functions!(@shim $call $role ($($argument),*))),* }
            }
        }

        static ORIGINALS: [AtomicUsize; Function::ALL.len()] =
            [const { AtomicUsize::new(0) }; Function::ALL.len()];

        /// The runtime's own functions, with their types.
        pub(crate) mod original {
            use super::*;
            $(
                /// The function that a shim stands in for. It is known before the shim can be reached.
                pub(crate) fn $call() -> Option<unsafe extern "C" fn($($argument),*) -> UrResult> {
                    let address = ORIGINALS[Function::$variant as usize].load(Ordering::Acquire);
                    // SAFETY: the address was taken from the slot of exactly this function, whose signature the
                    // specification fixes; 0 becomes `None`.
                    unsafe { std::mem::transmute(address) }
                }
            )*
        }
    };
    (@shim $call:ident hooked ($($argument:ty),*)) => {{
        let shim: unsafe extern "C" fn($($argument),*) -> UrResult = crate::shims::$call;
        Some(shim as usize)
    }};
    (@shim $call:ident called ($($argument:ty),*)) => { None };
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
    UsmAllocInfo usm_alloc_info "urUSMGetMemAllocInfo" hooked
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
    ContextRetain context_retain "urContextRetain" called
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
    QueueFinish queue_finish "urQueueFinish" hooked
        (Handle);
    EventsWait events_wait "urEnqueueEventsWait" called
        (Handle, u32, WaitList, *mut Handle);
    EventWait event_wait "urEventWait" hooked
        (u32, WaitList);
    EventInfo event_info "urEventGetInfo" called
        (Handle, u32, usize, Pointer, *mut usize);
    EventRelease event_release "urEventRelease" called
        (Handle);
    KernelLaunch kernel_launch "urEnqueueKernelLaunch" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    KernelLaunchWithArguments kernel_launch_with_arguments "urEnqueueKernelLaunchWithArgsExp" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    KernelLaunchCustom kernel_launch_custom "urEnqueueKernelLaunchCustomExp" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    KernelLaunchCooperative kernel_launch_cooperative "urEnqueueCooperativeKernelLaunchExp" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    CommandBufferEnqueue command_buffer_enqueue "urEnqueueCommandBufferExp" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    GraphEnqueue graph_enqueue "urEnqueueGraphExp" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    NativeCommand native_command "urEnqueueNativeCommandExp" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    HostTask host_task "urEnqueueHostTaskExp" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    EnqueueFill2d enqueue_fill_2d "urEnqueueUSMFill2D" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    EnqueuePrefetch enqueue_prefetch "urEnqueueUSMPrefetch" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    EnqueueAdvise enqueue_advise "urEnqueueUSMAdvise" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    GlobalRead global_read "urEnqueueDeviceGlobalVariableRead" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    GlobalWrite global_write "urEnqueueDeviceGlobalVariableWrite" hooked
        (Handle, usize, usize, usize, usize, usize, Spill);
    DeviceInfo device_info "urDeviceGetInfo" hooked
        (Handle, u32, usize, Pointer, *mut usize);
}

/// Whether nothing can be submitted without passing through a shim.
static SUBMISSIONS_ARE_SEEN: AtomicBool = AtomicBool::new(false);

/// Says so of the way in that is being used.
pub(crate) fn set_submissions_are_seen(seen: bool) {
    SUBMISSIONS_ARE_SEEN.store(seen, Ordering::Release);
}

/// Whether the runtime has no function that submits work and was not found in its table.
pub(crate) fn submissions_are_seen() -> bool {
    SUBMISSIONS_ARE_SEEN.load(Ordering::Acquire)
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

    /// The functions without which it could not be known when freed memory is at rest.
    pub(crate) const GUARDING: [Function; 8] = [
        Function::EventsWait,
        Function::EventInfo,
        Function::EventRelease,
        Function::QueueInfo,
        Function::QueueRelease,
        Function::ContextRetain,
        Function::ContextRelease,
        Function::ContextInfo,
    ];

    /// One of these launches kernels, depending on the runtime's version.
    pub(crate) const LAUNCHING: [Function; 2] = [Function::KernelLaunch, Function::KernelLaunchWithArguments];

    /// Whether it gives a queue something to do.
    pub(crate) fn submits(self) -> bool {
        self.name().starts_with("urEnqueue") && self.shim().is_some()
    }

    /// Whether the runtime's own function has been found.
    pub(crate) fn is_known(self) -> bool {
        self.original_address() != 0
    }

    /// Where the runtime's own function is; 0 if it has not been found.
    pub(crate) fn original_address(self) -> usize {
        ORIGINALS[self as usize].load(Ordering::Acquire)
    }

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
