//! Memory that Python objects own, lent to the reader by its address.

use std::ffi::c_void;

use dpmem_stream::{Error, OpenFiles, Origin, Target};

/// Memory to fill.
pub(super) struct Lent {
    address: usize,
    length: usize,
}

impl Lent {
    /// Memory that is valid, and touched by nobody else, until this is dropped. (Python's side sees to both: the
    /// reader's keepers hold its owner, and a buffer belongs to one chunk at a time.)
    pub(super) fn new(address: usize, length: usize) -> Lent {
        Lent { address, length }
    }
}

impl Target for Lent {
    fn bytes(&mut self) -> &mut [u8] {
        if self.length == 0 {
            return &mut [];
        }
        // SAFETY: `new`'s caller vouches that the memory is there, that it is ours alone and that it stays until this is
        // dropped, which the borrow can't outlive. Its bytes come from an allocator that Rust knows nothing of, so they
        // are some bytes to it; bytes have no alignment. `StreamReader` drops the owner after the job, and
        // `stream_fill`'s caller holds it.
        unsafe { std::slice::from_raw_parts_mut(self.address as *mut u8, self.length) }
    }
}

/// Memory to read.
pub(super) struct Shown {
    address: usize,
    length: usize,
}

impl Shown {
    /// Memory that stays valid until this is dropped. (A `StreamOrigin` holds its owner, and jobs hold the origin.)
    pub(super) fn new(address: usize, length: usize) -> Shown {
        Shown { address, length }
    }
}

impl Origin for Shown {
    fn read(&self, offset: u64, into: &mut [u8], _: &mut OpenFiles) -> Result<(), Error> {
        let beyond = Error::Beyond { what: "an array", length: self.length as u64 };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if offset.checked_add(into.len()).is_none_or(|end| end > self.length) {
            return Err(beyond);
        }
        // SAFETY: the range was checked to lie in the memory that `new`'s caller vouches for. `into` is memory that is lent
        // to be written and so no part of an array. No reference to the array's bytes is made, since the program
        // may write other parts of it meanwhile; if it writes these, it gets the old or the new ones, as it would from any
        // copy that runs while it writes.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (self.address + offset) as *const u8,
                into.as_mut_ptr(),
                into.len(),
            );
        }
        Ok(())
    }
}

/// Whether the first and the last byte of memory can be read and written by this process: the system copies them onto
/// themselves and says if it can't.
pub(super) fn is_reachable(address: usize, length: usize) -> bool {
    let Some(last) = length.checked_sub(1).and_then(|last| address.checked_add(last)) else { return false };
    [address, last].into_iter().all(|at| {
        let mut byte = 0u8;
        let ours = libc::iovec { iov_base: std::ptr::from_mut(&mut byte).cast::<c_void>(), iov_len: 1 };
        let theirs = libc::iovec { iov_base: at as *mut c_void, iov_len: 1 };
        // SAFETY: both vectors hold one entry. The system checks `theirs` and fails where nothing is mapped or access isn't
        // allowed, without a signal; `ours` is a local variable. The byte is written back as it was read: nobody else has
        // the memory yet.
        unsafe {
            let own = libc::getpid();
            libc::process_vm_readv(own, &raw const ours, 1, &raw const theirs, 1, 0) == 1
                && libc::process_vm_writev(own, &raw const ours, 1, &raw const theirs, 1, 0) == 1
        }
    })
}
