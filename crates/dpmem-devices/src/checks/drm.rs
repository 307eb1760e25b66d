//! Whether the user may open the device nodes of the GPUs.

use std::os::unix::fs::MetadataExt;

use super::{Machine, Status, ok, skipped};
use crate::Gpu;

pub(super) fn permission(machine: &Machine) -> (Status, String, String) {
    let mut nodes: Vec<String> =
        machine.gpus.iter().filter_map(|gpu: &Gpu| gpu.render_node.clone()).collect();
    nodes.extend(machine.root.names("dev/dri").into_iter().filter(|name| name.starts_with("renderD")));
    nodes.sort();
    nodes.dedup();
    let nodes: Vec<_> = nodes.iter().map(|name| format!("/dev/dri/{name}")).collect();
    let (there, missing): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| machine.root.exists(node));
    if there.is_empty() {
        return match missing.as_slice() {
            [] => skipped("the system shows no GPU with a node in /dev/dri"),
            nodes => (
                Status::Failed,
                format!("the system shows a GPU, but {} is not there", nodes.join(" and ")),
                "in a container: docker run --device /dev/dri; else load the kernel's driver for the device"
                    .to_string(),
            ),
        };
    }
    let denied: Vec<_> = there.iter().filter_map(|node| Some((node, denied(machine, node)?))).collect();
    let Some((node, group)) = denied.first() else {
        return ok(format!("{} can be opened", there.join(" and ")));
    };
    let name = group_name(machine, *group);
    (
        Status::Failed,
        format!("{node} can't be opened: it belongs to the group {name}, which this user isn't in"),
        format!(
            "sudo usermod -aG {name} \"$USER\", then log in again; in a container: docker run --group-add {group}"
        ),
    )
}

/// The group that could open a node which the user can't.
fn denied(machine: &Machine, node: &str) -> Option<u32> {
    let metadata = std::fs::metadata(machine.root.path(node)).ok()?;
    let identity = &machine.identity;
    let shift = if identity.uid == metadata.uid() {
        6
    } else if identity.groups.contains(&metadata.gid()) {
        3
    } else {
        0
    };
    let allowed = identity.uid == 0 || metadata.mode() >> shift & 0o6 == 0o6;
    (!allowed).then(|| metadata.gid())
}

fn group_name(machine: &Machine, group: u32) -> String {
    let text = machine.root.text("etc/group").unwrap_or_default();
    let name = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(group)).then(|| name.to_string())
    });
    name.unwrap_or_else(|| group.to_string())
}
