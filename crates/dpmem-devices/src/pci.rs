//! GPUs as the operating system shows them: on the PCI bus, with driver and device nodes.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Root};

/// Where a device sits on the PCI bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Domain, bus, device, function.
    pub parts: (u32, u8, u8, u8),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (domain, bus, device, function) = self.parts;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl FromStr for Address {
    type Err = Error;

    /// Reads `0000:03:00.0`; NVIDIA writes the domain with eight digits.
    fn from_str(text: &str) -> Result<Address, Error> {
        let wrong = || Error::malformed("a PCI address", "domain:bus:device.function", text);
        let mut parts = text.trim().split([':', '.']);
        let mut next = || u32::from_str_radix(parts.next()?, 16).ok();
        let numbers = (next(), next(), next(), next());
        let (Some(domain), Some(bus), Some(device), Some(function)) = numbers else { return Err(wrong()) };
        let byte = |number: u32| u8::try_from(number).map_err(|_| wrong());
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Address { parts: (domain, byte(bus)?, byte(device)?, byte(function)?) })
    }
}

/// A display controller or accelerator on the PCI bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Where it sits.
    pub address: Address,
    /// PCI vendor: 0x8086 is Intel, 0x10de NVIDIA, 0x1002 AMD.
    pub vendor: u32,
    /// PCI device.
    pub device: u32,
    /// The kernel driver that is bound to it.
    pub driver: Option<String>,
    /// `renderD128`, its node in `/dev/dri`, as sysfs names it.
    pub render_node: Option<String>,
    /// Its folder in sysfs.
    pub folder: String,
}

/// The PCI vendors that make GPUs SYCL can use.
pub(crate) const INTEL: u32 = 0x8086;
/// NVIDIA.
pub(crate) const NVIDIA: u32 = 0x10de;
/// AMD.
pub(crate) const AMD: u32 = 0x1002;

impl Gpu {
    /// What people call it, as far as the bus tells.
    #[must_use]
    pub fn title(&self) -> String {
        let vendor = match self.vendor {
            INTEL => "Intel".to_string(),
            NVIDIA => "NVIDIA".to_string(),
            AMD => "AMD".to_string(),
            other => format!("vendor {other:04x}"),
        };
        format!("{vendor} GPU {:04x}:{:04x}", self.vendor, self.device)
    }

    /// Whether it uses the host's memory; `None` where the bus doesn't tell. Intel's integrated GPU has had this one
    /// address since there has been one.
    #[must_use]
    pub fn integrated(&self) -> Option<bool> {
        match self.vendor {
            INTEL => Some(self.address.parts == (0, 0, 2, 0)),
            NVIDIA => Some(false),
            _ => None,
        }
    }
}

/// Every GPU on the PCI bus, by address. Virtual display adapters of no known vendor are left out: SYCL has no use for
/// them.
#[must_use]
pub fn gpus(root: &Root) -> Vec<Gpu> {
    let mut found: Vec<Gpu> =
        root.names("sys/bus/pci/devices").iter().filter_map(|name| gpu(root, name)).collect();
    // A container may be shown the nodes and not the bus.
    for node in root.names("sys/class/drm").iter().filter(|name| name.starts_with("renderD")) {
        found.extend(
            gpu_of_node(root, node).filter(|gpu| found.iter().all(|known| known.address != gpu.address)),
        );
    }
    found.sort_by_key(|gpu| gpu.address);
    found
}

fn gpu_of_node(root: &Root, node: &str) -> Option<Gpu> {
    let folder = format!("sys/class/drm/{node}/device");
    let uevent = root.text(&format!("{folder}/uevent")).ok()?;
    let field = |name: &str| uevent.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let address = field("PCI_SLOT_NAME")?.parse().ok()?;
    let (vendor, device) = (id(root, &folder, "vendor")?, id(root, &folder, "device")?);
    let driver = field("DRIVER").map(str::to_string);
    [INTEL, NVIDIA, AMD].contains(&vendor).then(|| Gpu {
        address,
        vendor,
        device,
        driver,
        render_node: Some(node.to_string()),
        folder,
    })
}

fn id(root: &Root, folder: &str, file: &str) -> Option<u32> {
    root.number(&format!("{folder}/{file}")).ok().and_then(|id| u32::try_from(id).ok())
}

/// The GPU at one address.
#[must_use]
pub fn gpu_at(root: &Root, address: Address) -> Option<Gpu> {
    gpu(root, &address.to_string()).or_else(|| gpus(root).into_iter().find(|gpu| gpu.address == address))
}

fn gpu(root: &Root, name: &str) -> Option<Gpu> {
    let address = name.parse().ok()?;
    let folder = format!("sys/bus/pci/devices/{name}");
    let class = root.number(&format!("{folder}/class")).ok()? >> 8;
    // Display controllers, and processing accelerators.
    if class >> 8 != 0x03 && class >> 8 != 0x12 {
        return None;
    }
    let (vendor, device) = (id(root, &folder, "vendor")?, id(root, &folder, "device")?);
    if ![INTEL, NVIDIA, AMD].contains(&vendor) || (class >> 8 == 0x12 && vendor == INTEL) {
        // Intel's accelerators of that class are NPUs.
        return None;
    }
    let driver = root.link(&format!("{folder}/driver"));
    let driver =
        driver.and_then(|link| link.rsplit('/').next().map(str::to_string)).filter(|name| !name.is_empty());
    let nodes = root.names(&format!("{folder}/drm"));
    let render_node = nodes.into_iter().find(|node| node.starts_with("renderD"));
    Some(Gpu { address, vendor, device, driver, render_node, folder })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        let address: Address = "00000000:1B:00.0".parse().expect("as NVIDIA writes it");
        assert_eq!(address.to_string(), "0000:1b:00.0");
        assert_eq!("0000:03:1f.7".parse::<Address>().expect("usual").parts, (0, 3, 0x1f, 7));
        for bad in ["", "0000:03:00", "0000:03:00.0.0", "0000:103:00.0", "x:y:z.w", "0000:03:00.-1"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in ".*") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse::<Address>().expect("its own text"), address);
            }
        }
    }
}
