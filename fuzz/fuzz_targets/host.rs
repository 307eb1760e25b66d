//! Any text as `/proc/meminfo` and `/proc/PID/cgroup`. Must hold: no panic, and no path that leaves the hierarchy.

#![no_main]

use dpmem_devices::host::{parse_cgroup, parse_meminfo};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = parse_meminfo(text);
    assert!(parse_cgroup(text).iter().all(|(_, path)| path.split('/').all(|part| part != "..")));
});
