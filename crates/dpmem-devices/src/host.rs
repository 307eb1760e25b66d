//! Memory of the host: what a CPU device or an integrated GPU really has.
//!
//! The device itself reports all RAM. What counts is the smallest of RAM and the limits of the control groups that the
//! process is in, each level of the hierarchy included.

use crate::{Error, Reading, Root};

/// `/proc/meminfo` in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meminfo {
    /// RAM that the kernel manages.
    pub total: u64,
    /// What could be allocated without swapping.
    pub available: u64,
}

/// Reads the text of `/proc/meminfo`.
///
/// # Errors
/// One of the two lines is missing or is no number of kB.
pub fn parse_meminfo(text: &str) -> Result<Meminfo, Error> {
    let field = |name: &'static str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let line =
            line.ok_or_else(|| Error::malformed("meminfo", name, text.lines().next().unwrap_or("")))?;
        let number = line.trim().strip_suffix("kB").map(str::trim).and_then(|word| word.parse::<u64>().ok());
        number
            .and_then(|kib| kib.checked_mul(1024))
            .ok_or_else(|| Error::malformed("meminfo", "a number of kB", line))
    };
    Ok(Meminfo { total: field("MemTotal")?, available: field("MemAvailable")? })
}

/// One control group that limits memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The folder of the group.
    pub folder: String,
    /// The limit in bytes.
    pub max: u64,
    /// What the limit leaves: the file cache counts as free, as it does in `MemAvailable`.
    pub free: u64,
}

/// The memory controller's folders in `/proc/PID/cgroup`: (version, path) each.
#[must_use]
pub fn parse_cgroup(text: &str) -> Vec<(u8, String)> {
    let entry = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        match (number, controllers) {
            ("0", "") => Some((2, path.to_string())),
            (_, names) if names.split(',').any(|name| name == "memory") => Some((1, path.to_string())),
            _ => None,
        }
    };
    // A path with `..` would leave the hierarchy: a process outside our namespace, whose limits we can't see.
    text.lines().filter_map(entry).filter(|(_, path)| !path.split('/').any(|part| part == "..")).collect()
}

/// Limits in force for a process, each level included; the tightest is not necessarily the first.
#[must_use]
pub fn limits(root: &Root, pid: Option<u32>) -> Vec<Limit> {
    let who = pid.map_or("self".to_string(), |pid| pid.to_string());
    let Ok(text) = root.text(&format!("proc/{who}/cgroup")) else { return Vec::new() };
    let mut found = Vec::new();
    for (version, path) in parse_cgroup(&text) {
        let mounts: &[&str] = if version == 2 {
            &["sys/fs/cgroup", "sys/fs/cgroup/unified"]
        } else {
            &["sys/fs/cgroup/memory"]
        };
        for mount in mounts {
            // Without a namespace of its own a container sees its group at the root of the mount.
            let mut folder = path.trim_end_matches('/').to_string();
            loop {
                found.extend(limit(root, version, format!("{mount}{folder}")));
                let Some(end) = folder.rfind('/') else { break };
                folder.truncate(end);
            }
        }
    }
    found
}

fn limit(root: &Root, version: u8, folder: String) -> Option<Limit> {
    let [max, usage, cache] = match version {
        2 => ["memory.max", "memory.current", "inactive_file"],
        _ => ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
    };
    // `max` itself means no limit and is no number.
    let max = root.number(&format!("{folder}/{max}")).ok()?;
    let usage = root.number(&format!("{folder}/{usage}")).ok()?;
    let stat = root.text(&format!("{folder}/memory.stat")).unwrap_or_default();
    let cache =
        stat.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(Limit { folder, max, free: max.saturating_sub(usage.saturating_sub(cache)) })
}

/// What the host has for a process.
///
/// # Errors
/// `/proc/meminfo` can't be read or understood.
pub fn reading(root: &Root, pid: Option<u32>) -> Result<Reading, Error> {
    let meminfo = parse_meminfo(&root.text("proc/meminfo")?)?;
    let (mut total, mut free, mut source) =
        (meminfo.total, meminfo.available, "meminfo MemAvailable".to_string());
    let limits = limits(root, pid);
    if let Some(smallest) = limits.iter().map(|limit| limit.max).min() {
        total = total.min(smallest);
    }
    if let Some(tightest) = limits.iter().min_by_key(|limit| limit.free).filter(|limit| limit.free < free) {
        free = tightest.free;
        source = format!("control group /{}", tightest.folder);
    }
    Ok(Reading::estimate(total, free, source))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn this_machine_has_memory() {
        let seen = reading(&Root::system(), None).expect("linux");
        assert!(seen.free_bytes.expect("known") > 0 && seen.free_bytes <= seen.total_bytes, "{seen:?}");
    }

    #[test]
    fn meminfo_wants_both_lines_in_kb() {
        let good = "MemTotal:  16 kB\nMemFree: 1 kB\nMemAvailable:\t8 kB\n";
        assert_eq!(parse_meminfo(good).expect("good"), Meminfo { total: 16 << 10, available: 8 << 10 });
        for bad in [
            "",
            "MemTotal: 16 kB\n",
            "MemTotal: 16\nMemAvailable: 8 kB",
            "MemTotal: -1 kB\nMemAvailable: 8 kB",
            "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB",
            "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB",
        ] {
            assert!(parse_meminfo(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn groups_of_both_versions() {
        let text = "9:name=systemd:/\n4:cpu,memory:/a/b:c\n0::/user.slice\nrubbish\n3:memory:/../x\n";
        assert_eq!(parse_cgroup(text), [(1, "/a/b:c".to_string()), (2, "/user.slice".to_string())]);
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in ".*") {
            let _ = parse_meminfo(&text);
            let _ = parse_cgroup(&text);
        }
    }
}
