//! The runtime as the pool's upstream.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use dpmem_core::Kind;
use dpmem_core::pool::{Place, Policy, Upstream};

use super::guard::{self, Fence};
use super::pages;
use crate::abi::{self, Handle, INVALID_VALUE, Pointer, SUCCESS, UrResult};
use crate::clock::Wait;
use crate::frames;
use crate::functions::original;

/// How long an allocation waits for a block to come to rest before it takes a new one after all.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same for a thread that holds the GIL: all others stand still meanwhile, and the work may need it.
const PATIENCE_WITH_GIL: Duration = Duration::from_millis(50);

/// For tests: whether blocks are filled with 0xFF when they come to rest.
static POISON: AtomicBool = AtomicBool::new(false);

/// For tests, on devices whose memory the host can write: fills blocks with 0xFF when they come to rest.
pub fn poison(on: bool) {
    POISON.store(on, Relaxed);
}

/// The runtime, as one call of the program's reaches it.
#[derive(Clone, Copy)]
pub(crate) struct Runtime {
    /// What the program describes the memory it asks for with.
    pub(super) descriptor: Pointer,
    /// The context that the program frees with; null for that of the block.
    pub(super) context: Handle,
}

impl Runtime {
    /// The runtime, for calls of ours.
    pub(super) const OURS: Runtime =
        Runtime { descriptor: std::ptr::null_mut(), context: std::ptr::null_mut() };
}

impl Upstream for Runtime {
    type Fence = Fence;
    type Refusal = UrResult;

    fn take(&self, place: &Place, bytes: u64) -> Result<usize, UrResult> {
        let (context, device) = (place.owner as Handle, place.handle as Handle);
        let (bytes, none) = (usize::try_from(bytes).map_err(|_| abi::INVALID_SIZE)?, std::ptr::null_mut());
        let mut block: Pointer = std::ptr::null_mut();
        let out = &raw mut block;
        // SAFETY: context, device and descriptor are those of the program's call that is being served, so they are what
        // the runtime expects; only the size may be larger. No runtime pool is named, as the program named none.
        let result = unsafe {
            match place.kind {
                Kind::Host => {
                    original::usm_host_alloc().map(|f| f(context, self.descriptor, none, bytes, out))
                }
                Kind::Device => original::usm_device_alloc()
                    .map(|f| f(context, device, self.descriptor, none, bytes, out)),
                Kind::Shared => original::usm_shared_alloc()
                    .map(|f| f(context, device, self.descriptor, none, bytes, out)),
            }
        };
        match result.unwrap_or(INVALID_VALUE) {
            SUCCESS if !block.is_null() => {
                if super::pool().policy() == Policy::Caching {
                    pages::advise(place, block as usize, bytes as u64);
                }
                Ok(block as usize)
            }
            SUCCESS => Err(INVALID_VALUE),
            refusal => Err(refusal),
        }
    }

    fn give(&self, place: &Place, address: usize) -> Result<(), UrResult> {
        let Some(free) = original::usm_free() else { return Err(INVALID_VALUE) };
        let context = if self.context.is_null() { place.owner as Handle } else { self.context };
        // SAFETY: the block came from `take`, or the program is freeing it with this very context, and it is given back
        // once: the pool takes it out of its books first. A context of the pool's is retained while it has blocks.
        match unsafe { free(context, address as Pointer) } {
            SUCCESS => Ok(()),
            refusal => Err(refusal),
        }
    }

    fn fence(&self, place: &Place, bytes: u64) -> Option<Fence> {
        guard::fence(place.owner, bytes)
    }

    fn passed(&self, fence: &Fence) -> bool {
        guard::passed(fence)
    }

    fn wait(&self, fence: &Fence) -> bool {
        let wait = Wait::begin();
        let passed = guard::wait(fence, if frames::thread_has_gil() { PATIENCE_WITH_GIL } else { PATIENCE });
        wait.until_now();
        passed
    }

    fn rested(&self, address: usize, bytes: u64) {
        if POISON.load(Relaxed) {
            // SAFETY: the block is the pool's, of this size, in use by nobody; the test that switched this on runs on a
            // device whose memory is the host's.
            unsafe { std::ptr::write_bytes(address as *mut u8, 0xFF, bytes as usize) };
        }
    }

    fn retain(&self, owner: usize) {
        if let Some(retain) = original::context_retain() {
            // SAFETY: the context is in use by the program's call that is being served.
            unsafe { retain(owner as Handle) };
        }
    }

    fn release(&self, owner: usize) {
        if let Some(release) = original::context_release() {
            // SAFETY: ends one `retain` of ours.
            unsafe { release(owner as Handle) };
        }
    }

    fn is_abandoned(&self, owner: usize, times: usize) -> bool {
        let Some(info) = original::context_info() else { return false };
        let (mut count, property) = (0u32, abi::CONTEXT_INFO_REFERENCE_COUNT);
        let into = (&raw mut count).cast();
        // SAFETY: we hold a reference to the context; the answer is one 32-bit number.
        let result = unsafe { info(owner as Handle, property, size_of::<u32>(), into, std::ptr::null_mut()) };
        result == SUCCESS && count as usize <= times
    }
}
