//! Programs that record themselves with dpmem, seen from outside: the files that they publish.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dpmem_core::{Usage, UsageMap};

use crate::Root;

/// A map of a later layout may be larger; more is not read.
const MAX_BYTES: u64 = 1 << 20;

/// One program that records itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its command line, words separated by spaces.
    pub command: String,
    /// What it has in use.
    pub usage: Usage,
}

/// The folders where programs publish: those of `user`, or of every user for the superuser.
#[must_use]
pub fn folders(user: u32) -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("dpmem"));
    let mut found: Vec<PathBuf> = own.into_iter().collect();
    let root = Root::system();
    if user == 0 {
        found.extend(
            root.names("run/user").iter().map(|name| PathBuf::from(format!("/run/user/{name}/dpmem"))),
        );
        let names = root.names("tmp").into_iter().filter(|name| name.starts_with("dpmem-"));
        found.extend(names.map(|name| PathBuf::from(format!("/tmp/{name}"))));
    } else {
        found.push(PathBuf::from(format!("/run/user/{user}/dpmem")));
        found.push(PathBuf::from(format!("/tmp/dpmem-{user}")));
    }
    found.sort();
    found.dedup();
    found
}

/// The programs that publish in `folders`, one or all, by process id.
#[must_use]
pub fn programs(root: &Root, folders: &[PathBuf], only: Option<u32>) -> Vec<Program> {
    let mut found = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            if only.is_none_or(|only| only == pid)
                && let Some(program) = program(root, &entry.path(), pid)
            {
                found.push(program);
            }
        }
    }
    found.sort_by_key(|program| program.usage.pid);
    found
}

fn program(root: &Root, path: &Path, pid: u32) -> Option<Program> {
    let usage = read(root, path, pid)?;
    let words = root.text(&format!("proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = words.split('\0').filter(|word| !word.is_empty()).collect();
    Some(Program { command: words.join(" "), usage })
}

/// What a file says, if the process that it names made it and is still there.
fn read(root: &Root, path: &Path, pid: u32) -> Option<Usage> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let owner = std::fs::metadata(root.path(&format!("proc/{pid}"))).ok()?.uid();
    if !metadata.is_file() || metadata.uid() != owner {
        return None;
    }
    let mut copy = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut copy).ok()?;
    let usage = UsageMap::decoded(&copy)?;
    let stat = root.text(&format!("proc/{pid}/stat")).ok()?;
    let started = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse::<u64>().ok()?;
    (usage.pid == pid && usage.started == started).then_some(usage)
}
