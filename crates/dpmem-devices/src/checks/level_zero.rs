//! Whether Level Zero's loader and Intel's driver are installed, and whether the driver tells free memory.

use super::{Machine, Status, ok, skipped};
use crate::gpu::is_privileged;

const LOADER: &str = "libze_loader.so.1";
const DRIVERS: &[&str] = &["libze_intel_gpu.so.1", "libze_intel_gpu_legacy1.so.1"];
const NO_GPU: &str = "the system shows no Intel GPU";

pub(super) fn loader(machine: &Machine) -> (Status, String, String) {
    match machine.library(LOADER) {
        Some(path) => ok(path),
        None if !wanted(machine) => skipped(NO_GPU),
        None => (
            Status::Failed,
            format!("there is an Intel GPU, but {LOADER} is not installed"),
            "sudo apt install libze1 (Debian, Ubuntu), or sudo dnf install oneapi-level-zero (Fedora)"
                .to_string(),
        ),
    }
}

pub(super) fn driver(machine: &Machine) -> (Status, String, String) {
    match DRIVERS.iter().find_map(|name| machine.library(name)) {
        Some(path) => ok(path),
        None if !wanted(machine) => skipped(NO_GPU),
        None => (
            Status::Failed,
            format!("there is an Intel GPU, but its Level Zero driver ({}) is not installed", DRIVERS[0]),
            "sudo apt install libze-intel-gpu1 (Debian, Ubuntu), or sudo dnf install intel-level-zero (Fedora)".to_string(),
        ),
    }
}

pub(super) fn privilege(machine: &Machine) -> (Status, String, String) {
    // An integrated GPU's memory is the host's, which anybody may read.
    if machine.intel_gpus().all(|gpu| gpu.integrated() == Some(true)) {
        return skipped("the system shows no Intel GPU with memory of its own");
    }
    if is_privileged(&machine.root) {
        return ok("this process may read what other processes use");
    }
    (
        Status::Warning,
        "this process lacks CAP_PERFMON: Intel's drivers show it all memory as free, so free memory is unknown".to_string(),
        "sudo setcap cap_perfmon+ep \"$(readlink -f \"$(command -v python3)\")\"".to_string(),
    )
}

fn wanted(machine: &Machine) -> bool {
    machine.is_wsl() || machine.intel_gpus().next().is_some()
}
