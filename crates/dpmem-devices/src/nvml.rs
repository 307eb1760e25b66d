//! NVIDIA's management library, loaded at run time where the driver brought it.
//!
//! `total` is what a program can have: the driver's reserved bytes are taken off, as CUDA's own `cudaMemGetInfo` does.

use std::sync::OnceLock;

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;

use crate::{Address, Error, Reading};

static NVML: OnceLock<Result<Nvml, String>> = OnceLock::new();

/// The library's name, which the driver's packages give it without a development link.
const LIBRARY: &str = "libnvidia-ml.so.1";

fn failed(error: impl ToString) -> Error {
    Error::Library { library: "NVML", message: error.to_string() }
}

fn nvml() -> Result<&'static Nvml, Error> {
    let load = || Nvml::builder().lib_path(LIBRARY.as_ref()).init().map_err(|error| error.to_string());
    NVML.get_or_init(load).as_ref().map_err(failed)
}

/// A device that NVML shows.
#[derive(Clone, Debug)]
pub struct Device {
    /// Where it sits.
    pub address: Address,
    /// What it is called.
    pub name: String,
}

/// Every device that NVML shows.
///
/// # Errors
/// There is no NVIDIA driver, or it refused.
pub fn devices() -> Result<Vec<Device>, Error> {
    let nvml = nvml()?;
    let count = nvml.device_count().map_err(failed)?;
    let device = |index| {
        let device = nvml.device_by_index(index).map_err(failed)?;
        let address = device.pci_info().map_err(failed)?.bus_id.parse()?;
        Ok(Device { address, name: device.name().unwrap_or_else(|_| "NVIDIA GPU".to_string()) })
    };
    (0..count).map(device).collect()
}

/// Memory of the device at `address`.
///
/// # Errors
/// There is no such device, or NVML refused.
pub fn reading(address: Address) -> Result<Reading, Error> {
    let device = nvml()?.device_by_pci_bus_id(address.to_string()).map_err(failed)?;
    let memory = device.memory_info().map_err(failed)?;
    let total = memory.total.saturating_sub(memory.reserved);
    Ok(Reading::exact(total, memory.free.min(total), "NVML"))
}

/// Bytes that each process has on the device at `address`, where the driver tells.
///
/// # Errors
/// There is no such device, or NVML refused.
pub fn processes(address: Address) -> Result<Vec<(u32, u64)>, Error> {
    let device = nvml()?.device_by_pci_bus_id(address.to_string()).map_err(failed)?;
    let processes = device.running_compute_processes().map_err(failed)?;
    let used = |process: nvml_wrapper::struct_wrappers::device::ProcessInfo| match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some((process.pid, bytes)),
        UsedGpuMemory::Unavailable => None,
    };
    Ok(processes.into_iter().filter_map(used).collect())
}
