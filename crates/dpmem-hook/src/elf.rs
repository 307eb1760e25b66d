//! The loaded libraries: where they are, which pointers they import, where their functions start.
//!
//! Everything is read from memory that the dynamic linker has mapped, but for `.symtab`, which is only in the file.

use std::ffi::{CStr, CString, c_void};

use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, PF_W, PT_DYNAMIC, PT_LOAD};
use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSymbol, SymbolKind};

/// A loaded library (or the program itself, whose name is empty).
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) path: String,
    pub(crate) base: usize,
    /// Its writable segments.
    pub(crate) data: Vec<(usize, usize)>,
    dynamic: Option<usize>,
}

/// A pointer that a library imports: the symbol's name and the address of the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) symbol: String,
    pub(crate) slot: usize,
}

/// All loaded libraries.
pub(crate) fn libraries() -> Vec<Library> {
    let mut found: Vec<Library> = Vec::new();
    // SAFETY: the callback matches the signature, and the vector outlives the call that fills it.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> i32 {
    // SAFETY: `libraries` passed the vector, and the linker passes a valid description of one object.
    let (found, info) = unsafe { (&mut *data.cast::<Vec<Library>>(), &*info) };
    let path = if info.dlpi_name.is_null() {
        String::new()
    } else {
        // SAFETY: the linker's names are NUL-terminated and live as long as the object is loaded.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned()
    };
    let base = info.dlpi_addr as usize;
    let headers: &[Elf64_Phdr] = if info.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: the linker states how many program headers there are at that address.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
    };
    let place = |header: &Elf64_Phdr| base + header.p_vaddr as usize;
    found.push(Library {
        path,
        base,
        data: headers
            .iter()
            .filter(|h| h.p_type == PT_LOAD && h.p_flags & PF_W != 0)
            .map(|h| (place(h), place(h) + h.p_memsz as usize))
            .collect(),
        dynamic: headers.iter().find(|h| h.p_type == PT_DYNAMIC).map(place),
    });
    0
}

impl Library {
    /// Its file name without the folder.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or("")
    }

    /// The slots through which it calls the symbols that `wanted` accepts.
    pub(crate) fn imports(&self, wanted: impl Fn(&[u8]) -> bool) -> Vec<Import> {
        const RELATIVE_TO_TABLE: [(i64, i64); 2] = [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)];
        let (Some(symbols), Some(strings)) = (self.table(DT_SYMTAB), self.table(DT_STRTAB)) else {
            return Vec::new();
        };
        let mut imports = Vec::new();
        for (table, size) in RELATIVE_TO_TABLE {
            let (Some(start), Some(bytes)) = (self.table(table), self.entry(size)) else { continue };
            let count = bytes / size_of::<Elf64_Rela>();
            // SAFETY: the dynamic section of a loaded library states where its relocations are and how many bytes they
            // take; the linker keeps them mapped.
            let relocations = unsafe { std::slice::from_raw_parts(start as *const Elf64_Rela, count) };
            for relocation in relocations {
                let kind = (relocation.r_info & 0xffff_ffff) as u32;
                if !matches!(kind, R_X86_64_64 | R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT) {
                    continue;
                }
                let index = (relocation.r_info >> 32) as usize;
                // SAFETY: a relocation of a loaded library names a symbol of its own symbol table.
                let symbol = unsafe { &*(symbols as *const Elf64_Sym).add(index) };
                if symbol.st_name == 0 {
                    continue;
                }
                // SAFETY: a symbol's name is an offset into the string table, which is NUL-terminated.
                let name = unsafe { CStr::from_ptr((strings + symbol.st_name as usize) as *const _) };
                if wanted(name.to_bytes()) {
                    let slot = self.base + relocation.r_offset as usize;
                    imports.push(Import { symbol: name.to_string_lossy().into_owned(), slot });
                }
            }
        }
        imports
    }

    /// The address of a symbol that it exports.
    pub(crate) fn exported(&self, symbol: &str) -> Option<usize> {
        let (path, symbol) = (CString::new(self.path.as_str()).ok()?, CString::new(symbol).ok()?);
        // SAFETY: both strings are NUL-terminated; NOLOAD opens only what is loaded already, so nothing is run.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            return None;
        }
        // SAFETY: the handle is open.
        let address = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
        // SAFETY: closes the handle that was opened above; the library stays, others hold it.
        unsafe { libc::dlclose(handle) };
        (!address.is_null()).then_some(address as usize)
    }

    /// The addresses of its own functions of these names, from the `.symtab` of its file: there the local ones are,
    /// too. `None` for a name that isn't there.
    pub(crate) fn local_functions(&self, names: &[&str]) -> Vec<Option<usize>> {
        let offsets = std::fs::File::open(&self.path)
            .ok()
            .and_then(|file| Map::of(&file))
            .map(|map| symbol_offsets(map.bytes(), names))
            .unwrap_or_else(|| vec![None; names.len()]);
        offsets.into_iter().map(|offset| offset.map(|offset| self.base + offset)).collect()
    }

    fn table(&self, tag: i64) -> Option<usize> {
        // The C library turns these into addresses when it loads the library; others leave them relative.
        self.entry(tag).map(|value| if value < self.base { value + self.base } else { value })
    }

    fn entry(&self, tag: i64) -> Option<usize> {
        let mut entry = self.dynamic? as *const [i64; 2];
        loop {
            // SAFETY: the dynamic section of a loaded library is an array of pairs that ends with the tag 0.
            let [found, value] = unsafe { *entry };
            match found {
                0 => return None,
                found if found == tag => return Some(value as usize),
                // SAFETY: this was not the last pair.
                _ => entry = unsafe { entry.add(1) },
            }
        }
    }
}

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;

fn symbol_offsets(file: &[u8], names: &[&str]) -> Vec<Option<usize>> {
    let mut offsets = vec![None; names.len()];
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(file) else { return offsets };
    if elf.elf_header().e_machine(object::Endianness::Little) != object::elf::EM_X86_64 {
        return offsets;
    }
    let functions = elf.symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
    for symbol in functions {
        let Ok(name) = symbol.name_bytes() else { continue };
        if !name.starts_with(b"ur") {
            continue;
        }
        if let Some(index) = names.iter().position(|wanted| wanted.as_bytes() == name) {
            offsets[index] = Some(symbol.address() as usize);
        }
    }
    offsets
}

/// A file mapped for reading.
struct Map {
    start: *mut c_void,
    len: usize,
}

impl Map {
    fn of(file: &std::fs::File) -> Option<Self> {
        use std::os::fd::AsRawFd;
        let len = usize::try_from(file.metadata().ok()?.len()).ok().filter(|&len| len > 0)?;
        // SAFETY: maps an open file for reading at an address of the system's choice.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        (start != libc::MAP_FAILED).then_some(Map { start, len })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping holds `len` readable bytes until it is dropped. A library file that someone truncates
        // while it is loaded would break the process with or without us.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.len) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `of` mapped; `bytes` borrows from self, so no slice is left.
        unsafe { libc::munmap(self.start, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_imports_from_the_c_library() {
        let libraries = libraries();
        assert!(libraries.iter().any(|l| l.name().starts_with("libc.so")), "{libraries:?}");
        let program = libraries.iter().find(|l| l.path.is_empty()).expect("the program itself");
        let imports = program.imports(|name| name == b"malloc" || name == b"write");
        assert!(!imports.is_empty());
        assert!(
            imports.iter().all(|i| program.data.iter().any(|&(s, e)| (s..e).contains(&i.slot)) || i.slot > 0)
        );
    }

    #[test]
    fn exported_functions_have_addresses() {
        let libraries = libraries();
        let c = libraries.iter().find(|l| l.name().starts_with("libc.so")).expect("the C library");
        assert!(c.exported("qsort").is_some());
        assert!(c.exported("no such function").is_none());
    }

    #[test]
    fn a_file_that_is_no_library_has_no_symbols() {
        assert_eq!(symbol_offsets(b"\x7fELF nonsense", &["urUSMFree"]), [None]);
        assert_eq!(symbol_offsets(b"", &["urUSMFree"]), [None]);
    }
}
