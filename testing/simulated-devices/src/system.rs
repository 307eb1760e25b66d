//! What is taken from the C library: mappings.

use std::ffi::{c_int, c_void};

unsafe extern "C" {
    fn mmap(address: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void;
    fn munmap(address: *mut c_void, length: usize) -> c_int;
}

const READ_WRITE: c_int = 0x1 | 0x2;
const PRIVATE_ANONYMOUS_UNRESERVED: c_int = 0x02 | 0x20 | 0x4000;
const PAGE: usize = 4096;

/// Memory of its own. Pages that nobody has touched cost nothing, so a large device fits into a small machine.
#[derive(Debug)]
pub struct Mapping {
    start: usize,
    length: usize,
}

impl Mapping {
    /// At least `bytes`, beginning at a multiple of `align`, which is a power of two; with the address of that.
    pub fn new(bytes: usize, align: usize) -> Option<(Self, usize)> {
        let align = align.max(PAGE);
        let length = bytes.checked_add(align)?.checked_next_multiple_of(PAGE)?;
        // SAFETY: a new anonymous mapping at an address of the system's choice touches no memory that is in use.
        let start =
            unsafe { mmap(std::ptr::null_mut(), length, READ_WRITE, PRIVATE_ANONYMOUS_UNRESERVED, -1, 0) }.addr();
        if start == usize::MAX {
            return None;
        }
        Some((Self { start, length }, start.next_multiple_of(align)))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this and nothing else unmaps it. Whoever frees a block promises, by the rules of
        // OpenCL and Level Zero, that nothing uses it any more.
        unsafe { munmap(self.start as *mut c_void, self.length) };
    }
}
