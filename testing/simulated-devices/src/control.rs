//! Functions that a test calls through `ctypes`, in the process that has the devices.
//!
//! Devices are numbered as in the description. What is told of a device that isn't there is `u64::MAX`, and orders for it
//! are answered with 0 instead of 1.

use std::time::Duration;

use crate::blocks;
use crate::device::{Device, devices};

/// How many devices are described.
#[unsafe(no_mangle)]
pub extern "C" fn simulated_count() -> u32 {
    devices().len() as u32
}

/// Bytes of device and shared allocations of this process.
#[unsafe(no_mangle)]
pub extern "C" fn simulated_used(device: u32) -> u64 {
    devices().get(device as usize).map_or(u64::MAX, Device::used)
}

/// Bytes that nobody uses.
#[unsafe(no_mangle)]
pub extern "C" fn simulated_free(device: u32) -> u64 {
    devices().get(device as usize).map_or(u64::MAX, Device::free)
}

/// Bytes of host allocations of this process.
#[unsafe(no_mangle)]
pub extern "C" fn simulated_host_used() -> u64 {
    blocks::host_bytes()
}

/// Other processes use so many bytes from now on.
#[unsafe(no_mangle)]
pub extern "C" fn simulated_set_others(device: u32, bytes: u64) -> u32 {
    order(device, |device| device.set_others(bytes))
}

/// The `number`-th allocation from now on the device fails; 1 is the next one, 0 none.
#[unsafe(no_mangle)]
pub extern "C" fn simulated_fail_at(device: u32, number: u64) -> u32 {
    order(device, |device| device.fail_at(number))
}

/// From now on, freed memory can be had again only so many milliseconds later.
#[unsafe(no_mangle)]
pub extern "C" fn simulated_delay_frees(device: u32, milliseconds: u64) -> u32 {
    order(device, |device| device.delay_frees(Duration::from_millis(milliseconds)))
}

fn order(device: u32, action: impl FnOnce(&Device)) -> u32 {
    devices().get(device as usize).map(action).is_some().into()
}
