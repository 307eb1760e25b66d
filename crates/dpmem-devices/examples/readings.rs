//! Prints what this machine tells of its devices, and what asking costs: `cargo run -p dpmem-devices --example readings`.

use std::io::Write;
use std::time::Instant;

use dpmem_devices::{Root, Wanted, gpus, nvml, process_memory, reading};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    let root = Root::system();
    let known = nvml::devices().unwrap_or_default();
    for device in &known {
        writeln!(out, "NVML: {} {}", device.address, device.name)?;
    }
    let mut addresses: Vec<_> = gpus(&root).iter().map(|gpu| gpu.address).collect();
    addresses.extend(known.iter().map(|device| device.address));
    addresses.sort();
    addresses.dedup();
    let mut all: Vec<_> =
        addresses.iter().map(|&address| Wanted { address: Some(address), ..Wanted::default() }).collect();
    all.push(Wanted { cpu: true, ..Wanted::default() });
    for wanted in &all {
        let name = wanted.address.map_or("host".to_string(), |address| address.to_string());
        let mut times = Vec::new();
        let mut seen = None;
        for _ in 0..101 {
            let start = Instant::now();
            seen = Some(reading(&root, wanted));
            times.push(start.elapsed());
        }
        times.sort();
        let Some(seen) = seen else { continue };
        writeln!(
            out,
            "{name}: total {:?} free {:?} ({}, {})",
            seen.total_bytes,
            seen.free_bytes,
            seen.source,
            seen.trust.name()
        )?;
        writeln!(
            out,
            "{name}: median {:?}, worst {:?} of {}",
            times[times.len() / 2],
            times[times.len() - 1],
            times.len()
        )?;
    }
    for row in process_memory(&root, None) {
        writeln!(out, "process {} on {}: {} bytes ({})", row.pid, row.device, row.bytes, row.source)?;
    }
    Ok(())
}
