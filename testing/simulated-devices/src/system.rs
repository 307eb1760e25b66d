//! What is taken from the C library: mappings and the dynamic linker.

use std::ffi::{CStr, c_char, c_int, c_void};

unsafe extern "C" {
    fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(address: *mut c_void, length: usize) -> c_int;
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const READ_WRITE: c_int = 0x1 | 0x2;
const PRIVATE_ANONYMOUS_UNRESERVED: c_int = 0x02 | 0x20 | 0x4000;
/// What the system's pages hold.
pub const PAGE: usize = 4096;

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
            unsafe { mmap(std::ptr::null_mut(), length, READ_WRITE, PRIVATE_ANONYMOUS_UNRESERVED, -1, 0) }
                .expose_provenance();
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

/// A loaded library; it stays.
pub struct Library(usize);

impl Library {
    /// Loads it, or finds it if it is loaded.
    pub fn open(file: &CStr) -> Option<Self> {
        const NOW: c_int = 2;
        // SAFETY: the name is a C string. The file is the OpenCL runtime that the test's environment names.
        let handle = unsafe { dlopen(file.as_ptr(), NOW) };
        (!handle.is_null()).then(|| Self(handle.addr()))
    }

    /// The address of a symbol.
    pub fn symbol(&self, name: &CStr) -> Option<usize> {
        // SAFETY: the handle is from `dlopen` and never closed; the name is a C string.
        let address = unsafe { dlsym(self.0 as *mut c_void, name.as_ptr()) }.addr();
        (address != 0).then_some(address)
    }
}
