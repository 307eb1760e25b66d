//! Large pages for large blocks of CPU devices.
//!
//! Memory of such a device is the host's, and the first touch of each page of it is a fault. In pages of 2 MiB that is a
//! five-hundredth as many. NumPy asks for the same for its own large arrays.

use std::ffi::c_void;

use dpmem_core::Kind;
use dpmem_core::pool::Place;

use crate::abi::Handle;
use crate::devices;

/// Smaller blocks hold too few whole large pages.
const LARGE_BLOCK: u64 = 4 << 20;
const LARGE_PAGE: usize = 2 << 20;

/// Asks for large pages where a new block is large enough and the host's memory.
pub(super) fn advise(place: &Place, address: usize, bytes: u64) {
    if bytes < LARGE_BLOCK || !is_on_cpu(place) {
        return;
    }
    let Some((start, length)) = whole_pages(address, bytes) else { return };
    // SAFETY: the range lies within a block that the runtime has just handed out and nobody uses yet. The advice changes
    // nothing about its contents or validity, and a kernel that can't follow it says so, which matters to nobody.
    unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_HUGEPAGE) };
}

/// The device is in use by the program's call that is being served, so it can be asked.
fn is_on_cpu(place: &Place) -> bool {
    match place.kind {
        Kind::Host => devices::is_cpu_of_context(place.owner as Handle),
        Kind::Device | Kind::Shared => devices::is_cpu(place.handle as Handle),
    }
}

/// Where the large pages that lie wholly in a block begin, and their bytes.
fn whole_pages(address: usize, bytes: u64) -> Option<(usize, usize)> {
    let end = address.checked_add(usize::try_from(bytes).ok()?)? / LARGE_PAGE * LARGE_PAGE;
    let start = address.checked_next_multiple_of(LARGE_PAGE)?;
    (end > start).then(|| (start, end - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pages_of_the_block_are_meant() {
        let page = LARGE_PAGE;
        assert_eq!(whole_pages(page, 2 * page as u64), Some((page, 2 * page)));
        assert_eq!(whole_pages(page + 64, 3 * page as u64), Some((2 * page, 2 * page)));
        assert_eq!(whole_pages(page + 64, 2 * page as u64 - 65), None);
        assert_eq!(whole_pages(usize::MAX - 10, 100), None);
        assert_eq!(whole_pages(page, u64::MAX), None);
    }
}
