//! Asks the i915 and xe kernel drivers for their memory regions, through a render node.
//!
//! One of the two FFI modules of this crate. Opens no display, submits no work, makes no context: both queries only
//! read what the driver knows.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::Error;
use crate::regions::{Region, parse_i915, parse_xe};

/// `DRM_IOCTL_I915_QUERY`: read and write, 16 bytes, type `d`, number 0x40 + 0x39.
const I915_QUERY: libc::c_ulong = 0xC010_6479;
const I915_MEMORY_REGIONS: u64 = 4;
/// `DRM_IOCTL_XE_DEVICE_QUERY`: read and write, 40 bytes, type `d`, number 0x40.
const XE_DEVICE_QUERY: libc::c_ulong = 0xC028_6440;
const XE_MEMORY_REGIONS: u32 = 1;
/// No answer is longer; a driver that says so is not believed.
const MAX_ANSWER: usize = 64 << 10;

/// `struct drm_i915_query_item`.
#[repr(C)]
struct I915Item {
    query: u64,
    length: i32,
    flags: u32,
    data: u64,
}

/// `struct drm_i915_query`.
#[repr(C)]
struct I915Query {
    items: u32,
    flags: u32,
    list: u64,
}

/// `struct drm_xe_device_query`.
#[repr(C)]
struct XeQuery {
    extensions: u64,
    query: u32,
    size: u32,
    data: u64,
    reserved: [u64; 2],
}

const _: () =
    assert!(size_of::<I915Item>() == 24 && size_of::<I915Query>() == 16 && size_of::<XeQuery>() == 40);

/// The memory regions of a device, as its driver tells.
pub(crate) fn regions(node: &Path, driver: &str) -> Result<Vec<Region>, Error> {
    let opened =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(node);
    let file = opened.map_err(|source| Error::File { path: node.to_path_buf(), source })?;
    let failed = |source| Error::File { path: node.to_path_buf(), source };
    match driver {
        "xe" => parse_xe(&xe(&file).map_err(failed)?),
        _ => parse_i915(&i915(&file).map_err(failed)?),
    }
}

fn i915(file: &File) -> std::io::Result<Vec<u8>> {
    let ask = |data: Option<&mut [u64]>| {
        let length = data.as_ref().map_or(0, |data| size_of_val(&**data) as i32);
        let data = data.map_or(0, |data| data.as_mut_ptr() as u64);
        let mut item = I915Item { query: I915_MEMORY_REGIONS, length, flags: 0, data };
        let mut query = I915Query { items: 1, flags: 0, list: (&raw mut item) as u64 };
        // SAFETY: the request number says that the argument is an `I915Query`, which it is. It lists one item that
        // lives until the call has returned; the item's buffer is null, which asks for the length alone, or as long as
        // `length` says, and lives in the caller.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), I915_QUERY, &raw mut query) };
        if result != 0 {
            return Err(std::io::Error::last_os_error());
        }
        // A negative length is an error number.
        usize::try_from(item.length).map_err(|_| std::io::Error::from_raw_os_error(-item.length))
    };
    let length = ask(None)?;
    let mut answer = room(length)?;
    let length = ask(Some(&mut answer))?;
    Ok(bytes(&answer, length))
}

fn xe(file: &File) -> std::io::Result<Vec<u8>> {
    let ask = |data: Option<&mut [u64]>| {
        let size = data.as_ref().map_or(0, |data| size_of_val(&**data) as u32);
        let data = data.map_or(0, |data| data.as_mut_ptr() as u64);
        let mut query = XeQuery { extensions: 0, query: XE_MEMORY_REGIONS, size, data, reserved: [0; 2] };
        // SAFETY: the request number says that the argument is an `XeQuery`, which it is. Its buffer is null with size
        // 0, which asks for the size alone, or as long as `size` says, and lives in the caller.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), XE_DEVICE_QUERY, &raw mut query) };
        if result == 0 { Ok(query.size as usize) } else { Err(std::io::Error::last_os_error()) }
    };
    let length = ask(None)?;
    let mut answer = room(length)?;
    let length = ask(Some(&mut answer))?;
    Ok(bytes(&answer, length))
}

/// Zeroed room for an answer, aligned as the kernel's structures are.
fn room(length: usize) -> std::io::Result<Vec<u64>> {
    if length == 0 || length > MAX_ANSWER {
        return Err(std::io::Error::other(format!("the driver wants to answer {length} bytes")));
    }
    Ok(vec![0; length.div_ceil(8)])
}

fn bytes(answer: &[u64], length: usize) -> Vec<u8> {
    answer.iter().flat_map(|word| word.to_ne_bytes()).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_render_node_is_an_error() {
        for driver in ["i915", "xe"] {
            assert!(regions(Path::new("/dev/null"), driver).is_err(), "{driver}");
            assert!(
                regions(Path::new("/dev/dri/renderD99999"), driver).is_err_and(|error| error.is_absent())
            );
        }
    }

    #[test]
    fn an_answer_has_bounds() {
        assert!(room(0).is_err() && room(MAX_ANSWER + 1).is_err());
        assert_eq!(bytes(&[0x0807_0605_0403_0201, 0xff], 9), [1, 2, 3, 4, 5, 6, 7, 8, 255]);
    }
}
