//! The file through which other processes see what is in use: `PID` in a folder of this user's own, mapped for the life
//! of the process.
//!
//! Made when the first recording begins or a pool is wanted, and removed when the process ends; what a killed process
//! leaves is removed by the next one. Whatever goes wrong here, recording goes on without it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use dpmem_core::{Rows, UsageMap};

static MAP: OnceLock<Option<&'static UsageMap>> = OnceLock::new();
static FILE: OnceLock<std::ffi::CString> = OnceLock::new();
/// The process that made the file: a forked child must not remove it.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Rows for a new recording, seen from outside where that can be.
pub(crate) fn rows() -> Rows {
    made().and_then(UsageMap::lend).map_or_else(Rows::own, Rows::Lent)
}

/// The map, made now if it can be.
pub(crate) fn made() -> Option<&'static UsageMap> {
    *MAP.get_or_init(|| publish().ok())
}

/// The map, if there is one.
pub(crate) fn map() -> Option<&'static UsageMap> {
    MAP.get().copied().flatten()
}

/// Removes the file; the map itself stays.
pub fn unpublish() {
    if OWNER.swap(0, Ordering::AcqRel) == std::process::id()
        && let Some(file) = FILE.get()
    {
        // SAFETY: the path is a C string that lives in a static.
        unsafe { libc::unlink(file.as_ptr()) };
    }
}

extern "C" fn at_exit() {
    unpublish();
}

fn publish() -> std::io::Result<&'static UsageMap> {
    let folder = folder()?;
    remove_stale(&folder);
    let path = folder.join(std::process::id().to_string());
    let _ = std::fs::remove_file(&path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(&path)?;
    let map = mapped(&file).inspect_err(|_| {
        let _ = std::fs::remove_file(&path);
    })?;
    map.label(std::process::id(), started().unwrap_or(0));
    OWNER.store(std::process::id(), Ordering::Release);
    if let Ok(text) = std::ffi::CString::new(path.as_os_str().as_bytes()) {
        let _ = FILE.set(text);
        // SAFETY: the handler is a plain function without arguments that touches statics only.
        unsafe { libc::atexit(at_exit) };
    }
    Ok(map)
}

fn mapped(file: &File) -> std::io::Result<&'static UsageMap> {
    let size = size_of::<UsageMap>();
    // The space is taken now: a full disk must be an error here, not a signal at the first event.
    // SAFETY: a plain system call on a descriptor that `file` keeps open.
    let refused = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size as libc::off_t) };
    if refused != 0 {
        return Err(std::io::Error::from_raw_os_error(refused));
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses, over `size` bytes that the file has.
    let address =
        unsafe { libc::mmap(std::ptr::null_mut(), size, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the mapping is as large as the type, aligned to a page, zeroed (a new file), which is a valid map by its
    // documentation, and never unmapped. All fields are atomics, so that a reader outside breaks no rule. Who shortens
    // the file can make an access fault: only this user can, as file and folder are closed to others.
    Ok(unsafe { &*address.cast::<UsageMap>() })
}

/// The folder for this user's files, made if it isn't there.
fn folder() -> std::io::Result<PathBuf> {
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| is_own(folder, user));
    let folder =
        runtime.map_or_else(|| PathBuf::from(format!("/tmp/dpmem-{user}")), |runtime| runtime.join("dpmem"));
    let made = DirBuilder::new().mode(0o700).create(&folder);
    if is_own(&folder, user) {
        return Ok(folder);
    }
    made.and(Err(std::io::Error::other("the folder belongs to somebody else or is open to others")))
}

fn is_own(folder: &Path, user: u32) -> bool {
    folder.is_absolute()
        && std::fs::symlink_metadata(folder)
            .is_ok_and(|found| found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0)
}

fn remove_stale(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// When this process started, in the kernel's ticks.
fn started() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use dpmem_core::Kind;

    use super::*;

    #[test]
    fn what_is_entered_can_be_read_from_the_file() {
        let rows = rows();
        let Some(map) = map() else { panic!("no map in /tmp") };
        map.name(dpmem_core::DeviceId::new(1), "opencl:cpu:0");
        rows[1].add(Kind::Device, 100);
        rows[1].add(Kind::Shared, 20);
        rows[1].add(Kind::Host, 3);
        rows[1].sub(Kind::Device, 100);
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(FILE.get().expect("published").to_bytes()));
        assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        let seen = UsageMap::decoded(&std::fs::read(&path).expect("readable")).expect("a map");
        assert_eq!((seen.pid, seen.recording, Some(seen.started)), (std::process::id(), true, started()));
        let device = &seen.devices[0];
        assert_eq!(device.name.as_deref(), Some("opencl:cpu:0"));
        assert_eq!((device.of(Kind::Device).0.bytes, device.of(Kind::Device).1.bytes), (0, 100));
        assert_eq!((device.of(Kind::Shared).0.count, device.of(Kind::Host).0.bytes), (1, 3));
        map.retire();
        assert!(!UsageMap::decoded(&std::fs::read(&path).expect("readable")).expect("a map").recording);
        unpublish();
        assert!(!path.exists());
    }
}
