//! The Sysman interface: what a device's memory holds, told as true or as false as real drivers tell it.
//!
//! A driver without it doesn't know the device (`sysman=0`). An unprivileged caller is told that all is free. An integrated device's
//! numbers are the host's. A privileged caller learns what nobody uses, of this process or another.

use super::abi::{
    zes_device_properties_t, zes_mem_properties_t, zes_mem_state_t, zes_pci_address_t, zes_pci_properties_t,
    zes_pci_speed_t, zes_uuid_t,
};
use super::device::{Driver, describe, driver, shown};
use super::{INVALID_ARGUMENT, Outcome, SUCCESS, UNINITIALIZED, UNSUPPORTED_FEATURE, list};
use crate::description::Sysman;
use crate::device::Device;
use crate::foreign::write_text;

/// The devices that it tells of.
fn told() -> Vec<&'static Device> {
    shown().into_iter().filter(|device| device.description.sysman != Sysman::Absent).collect()
}

#[unsafe(no_mangle)]
pub extern "C" fn zesInit(_flags: u32) -> Outcome {
    if told().is_empty() { UNINITIALIZED } else { SUCCESS }
}

#[unsafe(no_mangle)]
pub extern "C" fn zesDriverGet(count: &mut u32, into: *mut Driver) -> Outcome {
    list(count, into, &[driver()])
}

#[unsafe(no_mangle)]
pub extern "C" fn zesDeviceGet(_driver: Driver, count: &mut u32, into: *mut &'static Device) -> Outcome {
    list(count, into, &told())
}

#[unsafe(no_mangle)]
pub extern "C" fn zesDriverGetDeviceByUuidExp(
    _driver: Driver,
    uuid: zes_uuid_t,
    into: &mut usize,
    on_sub_device: Option<&mut u8>,
    sub_device: Option<&mut u32>,
) -> Outcome {
    let Some(device) = told().into_iter().find(|device| device.uuid() == uuid.id) else {
        return INVALID_ARGUMENT;
    };
    *into = std::ptr::from_ref(device).addr();
    if let Some(on_sub_device) = on_sub_device {
        *on_sub_device = 0;
    }
    if let Some(sub_device) = sub_device {
        *sub_device = 0;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zesDeviceGetProperties(device: &Device, it: &mut zes_device_properties_t) -> Outcome {
    describe(device, &mut it.core);
    it.numSubdevices = 0;
    let texts = [
        (&mut it.serialNumber, "unknown"),
        (&mut it.boardNumber, "unknown"),
        (&mut it.brandName, "unknown"),
        (&mut it.modelName, device.description.name.as_str()),
        (&mut it.vendorName, "Intel(R) Corporation"),
        (&mut it.driverVersion, "unknown"),
    ];
    for (field, value) in texts {
        write_text(field, value);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zesDevicePciGetProperties(device: &Device, it: &mut zes_pci_properties_t) -> Outcome {
    it.address = zes_pci_address_t { domain: 0, bus: device.bus(), device: 0, function: 0 };
    it.maxSpeed = zes_pci_speed_t { gen_: 5, width: 16, maxBandwidth: 63_000_000_000 };
    (it.haveBandwidthCounters, it.havePacketCounters, it.haveReplayCounters) = (0, 0, 0);
    SUCCESS
}

/// A device has one module of memory, which goes by the device's handle.
#[unsafe(no_mangle)]
pub extern "C" fn zesDeviceEnumMemoryModules(
    device: &'static Device,
    count: &mut u32,
    into: *mut &'static Device,
) -> Outcome {
    // The core's handle is taken for one of this interface, too.
    if device.description.sysman == Sysman::Absent {
        *count = 0;
        return UNSUPPORTED_FEATURE;
    }
    list(count, into, &[device])
}

#[unsafe(no_mangle)]
pub extern "C" fn zesMemoryGetProperties(memory: &Device, it: &mut zes_mem_properties_t) -> Outcome {
    const HBM: u32 = 0;
    const DDR: u32 = 1;
    const ON_SYSTEM: u32 = 0;
    const ON_DEVICE: u32 = 1;
    let integrated = memory.description.integrated;
    it.type_ = if integrated { DDR } else { HBM };
    it.location = if integrated { ON_SYSTEM } else { ON_DEVICE };
    (it.onSubdevice, it.subdeviceId) = (0, 0);
    // What lies in the host's memory has no size of its own.
    it.physicalSize = if integrated { 0 } else { memory.description.mem };
    (it.busWidth, it.numChannels) = (128, 8);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn zesMemoryGetState(memory: &Device, it: &mut zes_mem_state_t) -> Outcome {
    const HEALTHY: u32 = 1;
    let description = &memory.description;
    it.health = HEALTHY;
    (it.size, it.free) = match description.sysman {
        _ if description.integrated => {
            host_memory(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default())
        }
        Sysman::Privileged => (description.mem, memory.free()),
        Sysman::Unprivileged | Sysman::Absent => (description.mem, description.mem),
    };
    SUCCESS
}

/// Size and free bytes of the host's memory.
fn host_memory(meminfo: &str) -> (u64, u64) {
    let bytes = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let kibibytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kibibytes.map_or(0, |kibibytes| kibibytes << 10)
    };
    (bytes("MemTotal"), bytes("MemAvailable"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_host_s_memory_is_read() {
        let text = "MemTotalX:  1 kB\nMemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:   20 kB\n";
        assert_eq!(super::host_memory(text), (24_684_084 << 10, 20 << 10));
        assert_eq!(super::host_memory(""), (0, 0));
    }
}
