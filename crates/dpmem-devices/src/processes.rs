//! What each process holds on each device, as far as the system tells this one.

use std::collections::{BTreeMap, HashSet};

use crate::{Address, Root, fdinfo, nvml};

/// Memory of one process on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// The process.
    pub pid: u32,
    /// The device.
    pub device: Address,
    /// Bytes in the device's own memory.
    pub bytes: u64,
    /// Bytes in the host's memory on the device's behalf.
    pub host_bytes: u64,
    /// Who says so.
    pub source: String,
}

/// Memory by process and device, of one process or of all that this one may look into.
///
/// A client that several processes share (a descriptor that was inherited) is counted for the first of them.
#[must_use]
pub fn process_memory(root: &Root, only: Option<u32>) -> Vec<ProcessMemory> {
    let mut found: BTreeMap<(u32, Address), ProcessMemory> = BTreeMap::new();
    let mut seen = HashSet::new();
    let all = || root.names("proc").into_iter().filter_map(|name| name.parse().ok());
    let mut pids: Vec<u32> = only.map_or_else(|| all().collect(), |pid| vec![pid]);
    pids.sort_unstable();
    for pid in pids {
        for client in fdinfo::clients(root, pid).unwrap_or_default() {
            if !seen.insert((client.device, client.client)) {
                continue;
            }
            let (bytes, host_bytes) = (client.on_device(), client.on_host());
            let row = found.entry((pid, client.device)).or_insert_with(|| ProcessMemory {
                pid,
                device: client.device,
                bytes: 0,
                host_bytes: 0,
                source: format!("{} fdinfo", client.driver),
            });
            row.bytes = row.bytes.saturating_add(bytes);
            row.host_bytes = row.host_bytes.saturating_add(host_bytes);
        }
    }
    if root.is_system() {
        for device in nvml::devices().unwrap_or_default() {
            for (pid, bytes) in nvml::processes(device.address).unwrap_or_default() {
                if only.is_none_or(|only| only == pid) {
                    let source = "NVML".to_string();
                    let row = ProcessMemory { pid, device: device.address, bytes, host_bytes: 0, source };
                    found.insert((pid, device.address), row);
                }
            }
        }
    }
    found.into_values().collect()
}
