//! This process's own memory: what is mapped, and reading and writing words of it with care.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;

/// A mapping of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) writable: bool,
    pub(crate) readable: bool,
    pub(crate) executable: bool,
    /// File name without its folder; empty for anonymous memory.
    pub(crate) name: String,
}

impl Mapping {
    pub(crate) fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// All mappings of this process, in address order, as the system lists them.
pub(crate) fn mappings() -> Vec<Mapping> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    text.lines().filter_map(parse_mapping).collect()
}

/// The mapping that an address lies in.
pub(crate) fn mapping_of(mappings: &[Mapping], address: usize) -> Option<&Mapping> {
    let after = mappings.partition_point(|mapping| mapping.start <= address);
    mappings.get(after.checked_sub(1)?).filter(|mapping| mapping.contains(address))
}

fn parse_mapping(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let flags = rest.as_bytes().get(..3)?;
    let path = line.splitn(6, ' ').nth(5).unwrap_or("").trim();
    Some(Mapping {
        start: usize::from_str_radix(start, 16).ok()?,
        end: usize::from_str_radix(end, 16).ok()?,
        readable: flags[0] == b'r',
        writable: flags[1] == b'w',
        executable: flags[2] == b'x',
        name: path.rsplit('/').next().unwrap_or("").to_string(),
    })
}

/// Reads words at addresses that may not be mapped.
pub(crate) struct Peek(File);

impl Peek {
    /// `None` where the system doesn't let a process read itself this way.
    pub(crate) fn open() -> Option<Self> {
        File::open("/proc/self/mem").ok().map(Peek)
    }

    /// The word at `address`, if it is mapped.
    pub(crate) fn word(&self, address: usize) -> Option<usize> {
        let mut bytes = [0u8; 8];
        self.bytes(address, &mut bytes).then(|| usize::from_ne_bytes(bytes))
    }

    /// The 32-bit word at `address`, if it is mapped.
    pub(crate) fn half(&self, address: usize) -> Option<u32> {
        let mut bytes = [0u8; 4];
        self.bytes(address, &mut bytes).then(|| u32::from_ne_bytes(bytes))
    }

    /// The words from `start` to `end`, with their addresses; none if not all of them are mapped.
    pub(crate) fn words(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let start = start.next_multiple_of(8);
        let mut bytes = vec![0u8; end.saturating_sub(start) & !7];
        if !self.bytes(start, &mut bytes) {
            return Vec::new();
        }
        let (words, _) = bytes.as_chunks::<8>();
        let words =
            words.iter().enumerate().map(|(n, &word)| (start + n * 8, usize::from_ne_bytes(word))).collect();
        // No copy of what was read stays behind on the heap, where a later search could find it.
        std::hint::black_box(&mut bytes).fill(0);
        words
    }

    /// Fills `into` from `address`; false if not all of it is mapped.
    pub(crate) fn bytes(&self, address: usize, into: &mut [u8]) -> bool {
        address >= 4096 && self.0.read_exact_at(into, address as u64).is_ok()
    }
}

/// Replaces the pointer in `slot` if it still holds `expected`; says whether it did. A read-only page is made writable
/// for the moment and then what it was.
///
/// # Safety
/// `slot` must be the address of an aligned pointer that stays mapped, and that other code reads as a whole.
pub(crate) unsafe fn replace_pointer(
    slot: usize,
    expected: usize,
    new: usize,
    mappings: &[Mapping],
    function: &str,
) -> Result<bool, Error> {
    const PAGE: usize = 4096;
    let locked = mapping_of(mappings, slot).filter(|m| !m.writable);
    let page = (slot & !(PAGE - 1)) as *mut libc::c_void;
    if locked.is_some() {
        // SAFETY: the page holds `slot`, which is mapped; adding the right to write takes nothing from anyone.
        let failed = unsafe { libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE) } != 0;
        if failed {
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(Error::ReadOnly { function: function.to_string(), errno });
        }
    }
    // SAFETY: the caller vouches for an aligned, mapped pointer; it is writable now.
    let pointer = unsafe { AtomicUsize::from_ptr(slot as *mut usize) };
    let done = pointer.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if let Some(mapping) = locked {
        let execute = if mapping.executable { libc::PROT_EXEC } else { 0 };
        // SAFETY: gives the page the rights back that it had; nobody could write to it before.
        unsafe { libc::mprotect(page, PAGE, libc::PROT_READ | execute) };
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_map_is_understood() {
        let line = "7f8816640000-7f8816662000 r-xp 00000000 fe:00 1234    /opt/a b/libsycl.so.9";
        let mapping = parse_mapping(line).expect("it is well formed");
        assert_eq!(mapping.name, "libsycl.so.9");
        assert!(mapping.readable && mapping.executable && !mapping.writable);
        assert!(mapping.contains(0x7f88_1664_0000) && !mapping.contains(0x7f88_1666_2000));
        assert_eq!(parse_mapping("nonsense"), None);
        let maps = [mapping];
        assert!(
            mapping_of(&maps, 0x7f88_1664_0000).is_some() && mapping_of(&maps, 0x7f88_1666_2000).is_none()
        );
        assert!(mapping_of(&maps, 1).is_none());
    }

    #[test]
    fn unmapped_memory_reads_as_nothing() {
        let peek = Peek::open().expect("Linux");
        let value = 0x1234_5678_9abc_def0usize;
        assert_eq!(peek.word(&raw const value as usize), Some(value));
        let pair = [1usize, 2];
        let at = &raw const pair as usize;
        assert_eq!(peek.words(at, at + 16), [(at, 1), (at + 8, 2)]);
        assert!(peek.words(0x1000, 0x2000).is_empty());
        assert_eq!(peek.word(0x10), None);
        assert_eq!(peek.word(0x7fff_ffff_f000), None);
    }

    #[test]
    fn a_pointer_changes_only_from_what_was_expected() {
        let slot = Box::leak(Box::new(5usize));
        let address = &raw mut *slot as usize;
        // SAFETY: a leaked box is an aligned word that stays mapped.
        let swap = |from, to| unsafe { replace_pointer(address, from, to, &mappings(), "test") };
        assert_eq!(swap(4, 6), Ok(false));
        assert_eq!(swap(5, 6), Ok(true));
    }

    #[test]
    fn a_read_only_page_stays_read_only() {
        const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for a fresh page of our own.
        let page = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, RW, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        // SAFETY: the page is ours, and nothing else knows it.
        unsafe { libc::mprotect(page, 4096, libc::PROT_READ) };
        let address = page as usize;
        // SAFETY: the start of a page is aligned and stays mapped.
        assert_eq!(unsafe { replace_pointer(address, 0, 7, &mappings(), "test") }, Ok(true));
        let now = mappings();
        assert!(!now.iter().any(|m| m.contains(address) && m.writable));
        assert_eq!(Peek::open().and_then(|peek| peek.word(address)), Some(7));
    }
}
