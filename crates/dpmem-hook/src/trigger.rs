//! Comes in at the program's first USM call and no earlier.
//!
//! Every USM allocation passes through one of SYCL's own allocation functions (`sycl::malloc_device` and its kin), which
//! dpctl, dpnp's extension modules and oneMKL import. Their import slots get a stub that calls [`fired`] and goes on to
//! the real function as if nothing had been. At that moment SYCL is up, brought up by the program, with all variables
//! that the program set.
//!
//! Libraries come in as the program imports them, so `dlopen` is watched in the same way: when it has loaded something,
//! the new libraries' slots get their stubs. As soon as the shims are proved to work, everything here is taken out
//! again.
//!
//! Lock order: `SLOTS` is held while the dynamic linker's lock is taken, never the other way round; a `dlopen` from
//! inside another one therefore only tries for it, and leaves the scan to the outer call.

use std::arch::global_asm;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::elf::{self, Library};
use crate::error::Error;
use crate::install;
use crate::memory::{mapping_of, mappings, replace_pointer};

/// One stub for each variant of each allocation function.
const COUNT: usize = 64;
const STRIDE: usize = 16;

static TARGETS: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

unsafe extern "C" {
    static dpmem_triggers: u8;
}

// A trigger keeps all argument registers, and the arguments on the stack stay where they are, because it jumps to the
// real function instead of calling it; an exception of that function therefore passes as if the trigger weren't there.
global_asm!(
    ".pushsection .text.dpmem_triggers,\"ax\",@progbits",
    ".p2align 4",
    ".globl dpmem_triggers",
    ".hidden dpmem_triggers",
    "dpmem_triggers:",
    ".set dpmem_trigger_number, 0",
    ".rept {count}",
    ".p2align 4",
    "mov r11d, dpmem_trigger_number",
    "jmp dpmem_trigger_common",
    ".set dpmem_trigger_number, dpmem_trigger_number + 1",
    ".endr",
    ".p2align 4",
    "dpmem_trigger_common:",
    "push rbp",
    "mov rbp, rsp",
    "push rdi",
    "push rsi",
    "push rdx",
    "push rcx",
    "push r8",
    "push r9",
    "push r11",
    "push r11",
    "call {fired}",
    "pop r11",
    "pop r11",
    "pop r9",
    "pop r8",
    "pop rcx",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "pop rbp",
    "lea r10, [rip + {targets}]",
    "jmp qword ptr [r10 + r11*8]",
    ".popsection",
    count = const COUNT,
    fired = sym fired,
    targets = sym TARGETS,
);

/// An import slot that was changed.
struct Changed {
    slot: usize,
    was: usize,
    is: usize,
    symbol: String,
}

#[derive(Default)]
struct Slots {
    changed: Vec<Changed>,
    /// Where the libraries that have been looked at start.
    seen: Vec<usize>,
    /// The symbol of each stub in use.
    symbols: Vec<String>,
}

static SLOTS: Mutex<Slots> = Mutex::new(Slots { changed: Vec::new(), seen: Vec::new(), symbols: Vec::new() });
static SET: AtomicBool = AtomicBool::new(false);
/// The process that set the triggers: in a forked child they only pass calls on.
static OWNER: AtomicI32 = AtomicI32::new(0);

type Dlopen = unsafe extern "C" fn(*const c_char, i32) -> *mut c_void;

/// Puts the triggers in.
pub(crate) fn set() -> Result<(), Error> {
    // SAFETY: asks for the process's number, nothing more.
    OWNER.store(unsafe { libc::getpid() }, Ordering::Release);
    SET.store(true, Ordering::Release);
    scan(&mut lock())
}

/// Takes them out.
pub(crate) fn clear() {
    if !SET.swap(false, Ordering::AcqRel) {
        return;
    }
    let mut slots = lock();
    let maps = mappings();
    for Changed { slot, was, is, symbol } in slots.changed.drain(..) {
        // A library that was unloaded meanwhile has no mapping here.
        if mapping_of(&maps, slot).is_some() {
            // SAFETY: `scan` changed this slot, an aligned pointer; the comparison leaves it alone if somebody else has
            // changed it since.
            let _ = unsafe { replace_pointer(slot, is, was, &maps, &symbol) };
        }
    }
    slots.seen.clear();
}

fn lock() -> MutexGuard<'static, Slots> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a trigger has to do anything: in the process that set it, for a call of the program's own.
fn is_for_us() -> bool {
    // SAFETY: asks for the process's number, nothing more.
    let process = unsafe { libc::getpid() };
    SET.load(Ordering::Acquire) && OWNER.load(Ordering::Acquire) == process && !crate::fault::is_inside()
}

/// The program is about to allocate USM.
unsafe extern "C" fn fired() {
    if is_for_us() {
        crate::fault::contained(install::first_call);
    }
}

unsafe extern "C" fn watched_dlopen(path: *const c_char, flags: i32) -> *mut c_void {
    let real: Dlopen = libc::dlopen;
    // SAFETY: the arguments are those of the call that came in through an import slot of `dlopen`.
    let handle = unsafe { real(path, flags) };
    // After a failure nothing may be called that could overwrite the linker's error message.
    if !handle.is_null() && is_for_us() {
        crate::fault::contained(|| {
            if let Ok(mut slots) = SLOTS.try_lock() {
                let _ = scan(&mut slots);
            }
        });
    }
    handle
}

/// Puts stubs into the slots of libraries that have not been looked at.
fn scan(slots: &mut Slots) -> Result<(), Error> {
    let libraries = elf::libraries();
    let new: Vec<&Library> = libraries.iter().filter(|l| !slots.seen.contains(&l.base)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let runtime = libraries.iter().find(|library| is_sycl(library));
    let maps = mappings();
    let own = &raw const TARGETS as usize;
    for library in new {
        // A library that imports SYCL is never loaded before SYCL, so nothing is missed by leaving the rest for good.
        slots.seen.push(library.base);
        if is_sycl(library) || library.data.iter().any(|&(start, end)| (start..end).contains(&own)) {
            continue;
        }
        let interprets = loads_extensions(library);
        for import in library.imports(|symbol| (interprets && symbol == b"dlopen") || allocates(symbol)) {
            let stub = match runtime {
                _ if import.symbol == "dlopen" => Some(watched_dlopen as Dlopen as usize),
                Some(runtime) => stub_for(slots, &import.symbol, runtime),
                None => None,
            };
            let Some(stub) = stub else { continue };
            // SAFETY: a relocation of a loaded library says that an aligned pointer is here.
            let was = unsafe { std::ptr::read_volatile(import.slot as *const usize) };
            // SAFETY: as above; the linker and the code read it as a whole.
            if unsafe { replace_pointer(import.slot, was, stub, &maps, &import.symbol) }? {
                slots.changed.push(Changed { slot: import.slot, was, is: stub, symbol: import.symbol });
            }
        }
    }
    Ok(())
}

/// Whether extension modules are loaded from here: by the interpreter, which is the program itself or a library. It
/// names them by their path. Elsewhere `dlopen` is left alone, because the linker looks for a bare name along the
/// search path of the library that calls it, and that would be ours.
fn loads_extensions(library: &Library) -> bool {
    library.path.is_empty() || library.name().starts_with("libpython")
}

fn is_sycl(library: &Library) -> bool {
    library.name().starts_with("libsycl.so")
}

/// Whether a symbol is one of SYCL's allocation functions.
fn allocates(symbol: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] = [
        b"13malloc_deviceE",
        b"11malloc_hostE",
        b"13malloc_sharedE",
        b"6mallocE",
        b"20aligned_alloc_deviceE",
        b"18aligned_alloc_hostE",
        b"20aligned_alloc_sharedE",
        b"13aligned_allocE",
    ];
    // A namespace `sycl`, an inline namespace for the version of its ABI (`3_V1`), and the name.
    let Some([digit, version @ ..]) = symbol.strip_prefix(b"_ZN4sycl") else { return false };
    let Some(length) = (digit.is_ascii_digit()).then(|| usize::from(digit - b'0')) else { return false };
    version.get(length..).is_some_and(|rest| NAMES.iter().any(|name| rest.starts_with(name)))
}

/// The stub for an allocation function: the same for every library that imports it.
fn stub_for(slots: &mut Slots, symbol: &str, runtime: &Library) -> Option<usize> {
    let index = match slots.symbols.iter().position(|known| known == symbol) {
        Some(index) => index,
        None if slots.symbols.len() < COUNT => {
            slots.symbols.push(symbol.to_string());
            slots.symbols.len() - 1
        }
        None => return None,
    };
    TARGETS[index].store(runtime.exported(symbol)?, Ordering::Release);
    Some(&raw const dpmem_triggers as usize + index * STRIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocation_functions_are_recognised_by_name() {
        for symbol in [
            "_ZN4sycl3_V113malloc_deviceEmRKNS0_6deviceERKNS0_7contextERKNS0_6detail13code_locationE",
            "_ZN4sycl3_V113aligned_allocEmmRKNS0_5queueENS0_3usm5allocERKNS0_6detail13code_locationE",
            "_ZN4sycl4_V1213malloc_sharedEmRKNS0_5queueE",
        ] {
            assert!(allocates(symbol.as_bytes()), "{symbol}");
        }
        for symbol in ["_ZN4sycl3_V14freeEPvRKNS0_5queueE", "malloc", "_ZN4sycl", "_ZN4syclx", "_ZN4sycl9_V1"]
        {
            assert!(!allocates(symbol.as_bytes()), "{symbol}");
        }
    }

    #[test]
    fn a_trigger_passes_a_call_on_with_all_its_arguments() {
        type Sum = extern "C" fn(u64, u64, u64, u64, u64, u64, u64) -> u64;
        extern "C" fn sum(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64) -> u64 {
            a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g
        }
        TARGETS[COUNT - 1].store(sum as Sum as usize, Ordering::Release);
        let address = &raw const dpmem_triggers as usize + (COUNT - 1) * STRIDE;
        // SAFETY: the stub has the calling convention of what it passes calls on to.
        let stub: Sum = unsafe { std::mem::transmute(address) };
        assert_eq!(stub(1, 2, 3, 4, 5, 6, 7), 140);
    }
}
