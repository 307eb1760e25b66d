//! Free memory of one device: which sources there are for it, in which order they are asked.

use crate::pci::{AMD, INTEL, NVIDIA};
use crate::{Address, Error, Gpu, Reading, Root, gpu_at, gpus, host, ioctl, nvml, regions, sysman};

/// What is known of a device whose memory is to be read.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Whether it is the CPU.
    pub cpu: bool,
    /// Whether it uses the host's memory, if that is known.
    pub integrated: Option<bool>,
    /// Where it sits, if that is known.
    pub address: Option<Address>,
    /// PCI vendor and device, if known; they stand in for the address where there is just one such device.
    pub ids: Option<(u32, u32)>,
    /// Bytes that the device itself says it has.
    pub capacity_bytes: Option<u64>,
    /// Bytes that SYCL says are free, if it does.
    pub sycl_free_bytes: Option<u64>,
}

/// What a device has and has free. Asks the device's own driver first, then its management library, then SYCL.
#[must_use]
pub fn reading(root: &Root, wanted: &Wanted) -> Reading {
    if wanted.cpu || wanted.integrated == Some(true) {
        return of_host(root, wanted);
    }
    let gpu = find(root, wanted);
    if wanted.integrated.is_none() && gpu.as_ref().is_some_and(|gpu| gpu.integrated() == Some(true)) {
        return of_host(root, wanted);
    }
    let address = wanted.address.or(gpu.as_ref().map(|gpu| gpu.address));
    let privileged = is_privileged(root);
    let mut second_best: Option<Reading> = None;
    let mut take = |candidate: Option<Reading>| {
        let candidate = candidate?;
        if candidate.free_bytes.is_some() {
            return Some(candidate);
        }
        second_best.get_or_insert(candidate);
        None
    };
    let sources: [&dyn Fn() -> Option<Reading>; 4] = [
        &|| of_driver(root, gpu.as_ref()?, privileged),
        &|| of_nvml(root, address?, gpu.as_ref(), wanted),
        &|| of_sysman(root, address?, wanted, privileged),
        &|| of_sycl(wanted, privileged),
    ];
    let found = sources.iter().find_map(|source| take(source()));
    let nothing = || {
        let why = match (address, &gpu) {
            (None, _) => "it is not known which PCI device this is",
            (_, Some(gpu)) if gpu.driver.is_none() => "no kernel driver is bound to the device",
            _ => "no driver or management library tells",
        };
        Reading::unknown(wanted.capacity_bytes, why)
    };
    found.or(second_best).unwrap_or_else(nothing)
}

fn of_host(root: &Root, wanted: &Wanted) -> Reading {
    match host::reading(root, None) {
        Ok(reading) => part_of_host(reading, wanted),
        Err(error) => Reading::unknown(wanted.capacity_bytes, format!("cannot {error}")),
    }
}

/// A GPU in the host's memory may be given only a part of it, beyond which its driver refuses.
fn part_of_host(host: Reading, wanted: &Wanted) -> Reading {
    match (host.total_bytes.zip(host.free_bytes), wanted.capacity_bytes) {
        (Some((total, free)), Some(capacity)) if !wanted.cpu && capacity < total => {
            Reading::estimate(capacity, free, host.source)
        }
        _ => host,
    }
}

/// The device on the bus: by its address, or by its ids where just one has them.
fn find(root: &Root, wanted: &Wanted) -> Option<Gpu> {
    if let Some(address) = wanted.address {
        return gpu_at(root, address);
    }
    let ids = wanted.ids?;
    let mut found = gpus(root);
    found.retain(|gpu| (gpu.vendor, gpu.device) == ids);
    if found.len() == 1 { found.pop() } else { None }
}

fn of_driver(root: &Root, gpu: &Gpu, privileged: bool) -> Option<Reading> {
    match gpu.driver.as_deref()? {
        driver @ ("i915" | "xe") => of_intel(root, gpu, driver, privileged),
        "amdgpu" => {
            let number = |file: &str| root.number(&format!("{}/{file}", gpu.folder));
            let both =
                number("mem_info_vram_total").and_then(|total| Ok((total, number("mem_info_vram_used")?)));
            Some(match both {
                Ok((total, used)) if used <= total => Reading::exact(total, total - used, "amdgpu sysfs"),
                Ok((total, used)) => {
                    Reading::unknown(Some(total), format!("amdgpu says {used} bytes are used"))
                }
                Err(error) => Reading::unknown(None, format!("cannot {error}")),
            })
        }
        _ => None,
    }
}

fn of_intel(root: &Root, gpu: &Gpu, driver: &str, privileged: bool) -> Option<Reading> {
    let why = if !root.is_system() {
        "the driver can be asked on its own machine only".to_string()
    } else if let Some(node) = &gpu.render_node {
        match ioctl::regions(&root.path(&format!("dev/dri/{node}")), driver) {
            Ok(found) => match regions::on_device(&found) {
                Some((total, free)) => {
                    return Some(Reading::intel(total, free, &format!("{driver} driver"), privileged));
                }
                None => return host::reading(root, None).ok(),
            },
            Err(error) => format!("cannot {error}"),
        }
    } else {
        "the device has no render node".to_string()
    };
    Some(Reading::unknown(vram(root, gpu).ok(), why))
}

/// What xe says in sysfs that a discrete device has, tile by tile.
fn vram(root: &Root, gpu: &Gpu) -> Result<u64, Error> {
    let size = |tile: &str| root.number(&format!("{}/{tile}/physical_vram_size_bytes", gpu.folder));
    let first = size("tile0")?;
    let others = (1..8).map_while(|tile| size(&format!("tile{tile}")).ok());
    Ok(others.fold(first, u64::saturating_add))
}

fn of_nvml(root: &Root, address: Address, gpu: Option<&Gpu>, wanted: &Wanted) -> Option<Reading> {
    let vendor = gpu.map(|gpu| gpu.vendor).or(wanted.ids.map(|ids| ids.0));
    if !root.is_system() || vendor.is_some_and(|vendor| vendor != NVIDIA) {
        return None;
    }
    match nvml::reading(address) {
        Ok(reading) => Some(reading),
        Err(error) => vendor.map(|_| Reading::unknown(wanted.capacity_bytes, format!("cannot {error}"))),
    }
}

fn of_sysman(root: &Root, address: Address, wanted: &Wanted, privileged: bool) -> Option<Reading> {
    if !root.is_system() || wanted.ids.is_some_and(|(vendor, _)| vendor == NVIDIA || vendor == AMD) {
        return None;
    }
    let device = sysman::devices().ok()?.into_iter().find(|device| device.address == address)?;
    match sysman::memory(device) {
        Ok(Some((total, free))) => Some(Reading::intel(total, free, "Level Zero Sysman", privileged)),
        Ok(None) => None,
        Err(error) => Some(Reading::unknown(wanted.capacity_bytes, format!("cannot {error}"))),
    }
}

fn of_sycl(wanted: &Wanted, privileged: bool) -> Option<Reading> {
    let (total, free) = (wanted.capacity_bytes?, wanted.sycl_free_bytes?);
    let intel = wanted.ids.is_none_or(|(vendor, _)| vendor == INTEL);
    Some(if intel {
        Reading::intel(total, free, "SYCL", privileged)
    } else {
        Reading::exact(total, free, "SYCL")
    })
}

/// Whether the drivers tell this process the truth: it may look at performance data of all.
#[must_use]
pub(crate) fn is_privileged(root: &Root) -> bool {
    const PERFMON_OR_ADMIN: u64 = 1 << 38 | 1 << 21;
    let status = root.text("proc/self/status").unwrap_or_default();
    let mask =
        status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & PERFMON_OR_ADMIN != 0)
}
