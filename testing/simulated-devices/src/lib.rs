//! Devices that this machine does not have, on which SYCL programs really compute.
//!
//! One library plays two parts, and one process may use both of them at once:
//!
//! - named in `OPENCL_LAYERS`, it is a layer of the Khronos OpenCL loader that shows one more platform ([`opencl`]);
//! - named `libze_loader.so.1` and found first, it stands in for the Level Zero loader and driver ([`level_zero`]).
//!
//! Both show the devices that `SIMULATED_DEVICES` describes ([`description`]), with one account of each device's memory
//! ([`device`]), and have kernels run by Intel's OpenCL CPU runtime, which pip brings. [`control`] is for tests.
//!
//! Limits: OpenCL work is as asynchronous as on the CPU runtime; Level Zero work is done before the call that orders it
//! returns. There are no images, no interprocess handles and no native binaries of GPUs, so what needs those (MKL's float
//! products, Fourier transforms) fails as it would with a driver that lacks them.
//!
//! # Safety
//!
//! The functions here are called by C code that keeps the rules of OpenCL and Level Zero: a handle is one that we gave out
//! and that is still alive, a pointer is null where that is allowed and else points to what its type says, an array has as
//! many elements as the count beside it. `SAFETY` comments call this *the caller's promise*. Parameters that may be null
//! are `Option<&mut T>`, which is the same thing to C.

pub mod blocks;
pub mod control;
pub mod description;
pub mod device;
mod foreign;
pub mod level_zero;
pub mod opencl;
mod system;
