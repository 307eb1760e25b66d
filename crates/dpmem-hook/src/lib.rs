//! The interposer: sees every USM call of the process it is loaded into.
//!
//! Limits, stated first:
//! * Linux on x86-64, CPython with a GIL.
//! * Memory that the runtime hands out by other means than USM (buffers, images, virtual memory) is not counted; copies
//!   through buffers are.
//! * Calls that were made before [`start`] are known only as far as the caller names their blocks ([`adopt`]).
//!
//! The runtime calls its adapters through a table of function pointers. [`locate`](mod@locate) finds the slots of the
//! functions in [`functions`], [`install`] swaps each for a shim ([`shims`]) and proves that the shims see what the
//! program does, [`trigger`] brings all of that in at the program's first USM call and no earlier, and [`recorder`]
//! enters what the shims see in a ledger. Whatever goes wrong in here, the program's own call goes through unchanged.
//!
//! Threads: every function may be called from any thread. On the hook path nothing takes the GIL, prints, reads the
//! environment or waits without a bound, and no lock is held across the runtime's own call.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("dpmem-hook knows the x86-64 Linux ABI only");

mod abi;
mod clock;
mod devices;
mod elf;
mod error;
mod fault;
mod fetch;
mod foreign;
mod fork;
pub mod frames;
mod functions;
mod install;
mod launches;
mod locate;
mod memory;
mod pool;
mod published;
mod recorder;
mod reference;
mod shims;
mod stubs;
mod trigger;
mod witness;

pub use clock::{Clock, ticks};
pub use devices::{
    BlockOwner, DeviceProperties, DeviceTable, devices, observe_block, observe_device, properties,
};
pub use error::Error;
pub use fault::{Fault, inject};
pub use fork::is_child as is_forked_child;
pub use install::{
    Phase, Status, arm, come_in, listen, prove, remove, runtime_is_up, start_now, status, stop, when_in,
};
pub use pool::{
    Answer, PoolStatus, Shortage, Stage, device_room, entry, on_shortage, places, poison, pool_adopt,
    pool_cache, pool_configure, pool_empty, pool_limit, pool_limit_of, pool_reading, pool_readings,
    pool_reset_peak, pool_status, pool_unlimited,
};
pub use published::unpublish;
pub use recorder::{Recording, adopt, recording, set_libraries, set_stack_depth};
pub use reference::{ReferenceEvent, mark_begin, reference_events, reference_start, write_mark};
pub use witness::watch_operations;
