//! What the i915 and xe drivers answer when asked for their memory regions: bytes in, regions out.
//!
//! Layouts are those of the kernel's `i915_drm.h` and `xe_drm.h`. Fields are little-endian on every machine that has
//! such a device.

use crate::Error;

/// One region of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// On the device itself; else it is the host's memory.
    pub on_device: bool,
    /// Bytes it has.
    pub total: u64,
    /// Bytes free, as the driver tells this process.
    pub free: u64,
}

const HEAD: usize = 16;
const ENTRY: usize = 88;
/// No device has so many regions; a larger number is no answer.
const MAX_REGIONS: usize = 64;

/// Reads the answer to `DRM_I915_QUERY_MEMORY_REGIONS`.
///
/// # Errors
/// It is shorter than it says, or makes no sense.
pub fn parse_i915(answer: &[u8]) -> Result<Vec<Region>, Error> {
    entries(answer, HEAD, "i915 memory regions", |entry| {
        let (total, free) = (number(entry, 8), number(entry, 16));
        (u16::from_le_bytes([entry[0], entry[1]]) == 1, total, free)
    })
}

/// Reads the answer to `DRM_XE_DEVICE_QUERY_MEM_REGIONS`.
///
/// # Errors
/// It is shorter than it says, or makes no sense.
pub fn parse_xe(answer: &[u8]) -> Result<Vec<Region>, Error> {
    entries(answer, 8, "xe memory regions", |entry| {
        let (total, used) = (number(entry, 8), number(entry, 16));
        (u16::from_le_bytes([entry[0], entry[1]]) == 1, total, total.wrapping_sub(used))
    })
}

fn entries(
    answer: &[u8],
    head: usize,
    what: &str,
    read: impl Fn(&[u8]) -> (bool, u64, u64),
) -> Result<Vec<Region>, Error> {
    let short = || Error::malformed(what, "an answer as long as it says", &format!("{} bytes", answer.len()));
    let count = answer.get(..4).ok_or_else(short)?;
    let count = u32::from_le_bytes([count[0], count[1], count[2], count[3]]) as usize;
    if count > MAX_REGIONS {
        return Err(Error::malformed(what, "at most 64 regions", &count.to_string()));
    }
    let body = answer.get(head..head + count * ENTRY).ok_or_else(short)?;
    let region = |entry: &[u8]| {
        let (on_device, total, free) = read(entry);
        if free > total {
            return Err(Error::malformed(what, "no more free than there is", &format!("{free} of {total}")));
        }
        Ok(Region { on_device, total, free })
    };
    body.chunks_exact(ENTRY).map(region).collect()
}

fn number(entry: &[u8], at: usize) -> u64 {
    entry[at..at + 8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Total and free of the device's own regions together; `None` for a device that has none of its own.
#[must_use]
pub fn on_device(regions: &[Region]) -> Option<(u64, u64)> {
    let mut own = regions.iter().filter(|region| region.on_device).peekable();
    own.peek()?;
    Some(own.fold((0, 0), |(total, free): (u64, u64), region| {
        (total.saturating_add(region.total), free.saturating_add(region.free))
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer with one entry per (class, first number, second number).
    fn answer(head: usize, regions: &[(u16, u64, u64)]) -> Vec<u8> {
        let mut bytes = (regions.len() as u32).to_le_bytes().to_vec();
        bytes.resize(head, 0);
        for (class, first, second) in regions {
            let start = bytes.len();
            bytes.extend(class.to_le_bytes());
            bytes.extend([0; 6]);
            bytes.extend(first.to_le_bytes());
            bytes.extend(second.to_le_bytes());
            bytes.resize(start + ENTRY, 0);
        }
        bytes
    }

    #[test]
    fn i915_says_what_is_free_and_xe_what_is_used() {
        let i915 = parse_i915(&answer(16, &[(0, 100, 100), (1, 50, 20)])).expect("well-formed");
        assert_eq!(on_device(&i915), Some((50, 20)));
        let xe = parse_xe(&answer(8, &[(0, 100, 0), (1, 50, 20), (1, 50, 0)])).expect("well-formed");
        assert_eq!(on_device(&xe), Some((100, 80)));
        assert_eq!(on_device(&parse_xe(&answer(8, &[(0, 100, 0)])).expect("well-formed")), None);
    }

    #[test]
    fn an_answer_that_lies_is_an_error() {
        let good = answer(16, &[(1, 50, 20)]);
        assert!(parse_i915(&good[..good.len() - 1]).is_err());
        assert!(parse_i915(&[]).is_err());
        assert!(parse_i915(&[255; 16]).is_err());
        assert!(parse_xe(&answer(8, &[(1, 50, 51)])).is_err(), "more used than there is");
        assert!(parse_i915(&answer(16, &[(1, 50, 51)])).is_err(), "more free than there is");
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_answer(bytes: Vec<u8>) {
            let _ = parse_i915(&bytes).map(|regions| on_device(&regions));
            let _ = parse_xe(&bytes).map(|regions| on_device(&regions));
        }
    }
}
