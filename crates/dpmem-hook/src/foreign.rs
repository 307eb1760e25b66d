//! Reading data that belongs to the program, without touching it through a pointer: what was announced as host memory
//! may turn out not to be readable by the host, and then this process must not fault.

use dpmem_core::Data;

/// Words that one read gathers at most.
const GATHERED: usize = 64;

/// Some bytes of this process.
pub(crate) struct Foreign {
    pub(crate) address: usize,
    pub(crate) len: usize,
}

impl Data for Foreign {
    fn len(&self) -> usize {
        self.len
    }

    fn words(&self, offsets: &[usize], words: &mut [u64]) -> bool {
        if offsets.len() != words.len() || offsets.len() > GATHERED {
            return false;
        }
        let piece = |&offset: &usize| (self.address + offset, size_of::<u64>());
        let mut remote = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; GATHERED];
        for (remote, (address, len)) in remote.iter_mut().zip(offsets.iter().map(piece)) {
            *remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: len };
        }
        read(&remote[..offsets.len()], words.as_mut_ptr().cast(), size_of_val(words))
    }

    fn bytes(&self, offset: usize, into: &mut [u8]) -> bool {
        let remote =
            [libc::iovec { iov_base: (self.address + offset) as *mut libc::c_void, iov_len: into.len() }];
        read(&remote, into.as_mut_ptr(), into.len())
    }
}

/// Whether the system filled `len` bytes at `into` from the pieces.
fn read(pieces: &[libc::iovec], into: *mut u8, len: usize) -> bool {
    let local = libc::iovec { iov_base: into.cast(), iov_len: len };
    // SAFETY: `into` is valid for `len` bytes, as both callers show; the system checks the other addresses itself and
    // answers an error for what it can't read.
    let copied = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, pieces.as_ptr(), pieces.len() as u64, 0)
    };
    copied == len as isize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_are_read_from_all_over() {
        let data: Vec<u8> = (0..200).collect();
        let foreign = Foreign { address: data.as_ptr() as usize, len: data.len() };
        let mut words = [0; 2];
        assert!(foreign.words(&[3, 192], &mut words));
        assert_eq!(
            words.map(u64::to_ne_bytes),
            [[3, 4, 5, 6, 7, 8, 9, 10], [192, 193, 194, 195, 196, 197, 198, 199]]
        );
        let mut bytes = [0; 3];
        assert!(foreign.bytes(100, &mut bytes));
        assert_eq!(bytes, [100, 101, 102]);
    }

    #[test]
    fn memory_that_cannot_be_read_is_no_fault() {
        // SAFETY: asks for a fresh page that nobody may read.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let foreign = Foreign { address: page as usize, len: 4096 };
        assert!(!foreign.words(&[0, 8], &mut [0; 2]));
        assert!(!foreign.bytes(0, &mut [0; 16]));
    }
}
