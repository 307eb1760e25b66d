//! Whether a container was given the devices of its host.

use super::{Machine, Status, ok, skipped};
use crate::pci::NVIDIA;

pub(super) fn devices(machine: &Machine) -> (Status, String, String) {
    let root = &machine.root;
    let marked = root.exists(".dockerenv") || root.exists("run/.containerenv");
    let told = root
        .text("proc/1/environ")
        .is_ok_and(|text| text.split('\0').any(|entry| entry.starts_with("container=")));
    if !marked && !told {
        return skipped("not in a container");
    }
    if machine.gpus.is_empty() {
        return ok("in a container, and the system shows no GPU");
    }
    let missing = |nvidia: bool, node: &str| {
        machine.gpus.iter().any(|gpu| (gpu.vendor == NVIDIA) == nvidia) && !root.exists(node)
    };
    let (dri, nvidia) = (missing(false, "dev/dri"), missing(true, "dev/nvidiactl"));
    let titles: Vec<_> =
        machine.gpus.iter().map(|gpu| format!("{} at {}", gpu.title(), gpu.address)).collect();
    if !dri && !nvidia {
        return ok(format!("the container has the device nodes of {}", titles.join(" and ")));
    }
    let advice = match (dri, nvidia) {
        (_, false) => "docker run --device /dev/dri --group-add \"$(stat -c %g /dev/dri/renderD128)\" ...",
        _ => "docker run --gpus all ...",
    };
    let message =
        format!("the host has {}, but the container was not given its device nodes", titles.join(" and "));
    (Status::Failed, message, advice.to_string())
}
