//! Machine-code stubs that tell which slot of a table a call goes through.
//!
//! There are [`COUNT`] of them. Put in the place of a function, stub *n* passes every call on unchanged, with two
//! exceptions that a probe arranges:
//!
//! * a call whose first or second argument is [`SENTINEL`] is not passed on: the stub notes *n* and answers an error.
//!   Nobody but a probe makes such a call, since no handle and no pointer has that value;
//! * while a *watched* value is set, a stub notes in its slot of `WATCHED` which of the arguments 2 to 5 equalled it,
//!   and passes the call on.
//!
//! They keep every argument register, use only `r10` and `r11` (free by the calling convention) and leave the stack as
//! they found it.

use std::arch::global_asm;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many stubs there are.
pub(crate) const COUNT: usize = 2048;
/// An argument that only probes pass: no valid address on x86-64.
pub(crate) const SENTINEL: usize = 0xD9_5E_11_0D_9E_4A_7C_16_u64 as usize;
const STRIDE: usize = 16;

/// What the stub of a watched argument noted: a bit for each argument position.
pub(crate) const SECOND: usize = 1 << 1;
pub(crate) const THIRD: usize = 1 << 2;
pub(crate) const FOURTH: usize = 1 << 3;
pub(crate) const FIFTH: usize = 1 << 4;

static ORIGINALS: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
static WATCHED: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
static WATCH: AtomicUsize = AtomicUsize::new(0);
static TRAPPED: AtomicUsize = AtomicUsize::new(usize::MAX);

unsafe extern "C" {
    static dpmem_stubs: u8;
}

global_asm!(
    ".pushsection .text.dpmem_stubs,\"ax\",@progbits",
    ".p2align 4",
    ".globl dpmem_stubs",
    ".hidden dpmem_stubs",
    "dpmem_stubs:",
    ".set dpmem_stub_number, 0",
    ".rept {count}",
    ".p2align 4",
    "mov r11d, dpmem_stub_number",
    "jmp dpmem_stub_common",
    ".set dpmem_stub_number, dpmem_stub_number + 1",
    ".endr",
    ".p2align 4",
    "dpmem_stub_common:",
    "movabs r10, {sentinel}",
    "cmp rdi, r10",
    "je 3f",
    "cmp rsi, r10",
    "je 3f",
    "mov r10, qword ptr [rip + {watch}]",
    "test r10, r10",
    "jz 2f",
    "cmp rsi, r10",
    "jne 4f",
    "lea r10, [rip + {watched}]",
    "lock or qword ptr [r10 + r11*8], {second}",
    "4: mov r10, qword ptr [rip + {watch}]",
    "cmp rdx, r10",
    "jne 6f",
    "lea r10, [rip + {watched}]",
    "lock or qword ptr [r10 + r11*8], {third}",
    "6: mov r10, qword ptr [rip + {watch}]",
    "cmp rcx, r10",
    "jne 5f",
    "lea r10, [rip + {watched}]",
    "lock or qword ptr [r10 + r11*8], {fourth}",
    "5: mov r10, qword ptr [rip + {watch}]",
    "cmp r8, r10",
    "jne 2f",
    "lea r10, [rip + {watched}]",
    "lock or qword ptr [r10 + r11*8], {fifth}",
    "2: lea r10, [rip + {originals}]",
    "jmp qword ptr [r10 + r11*8]",
    "3: mov qword ptr [rip + {trapped}], r11",
    "mov eax, {refusal}",
    "ret",
    ".popsection",
    count = const COUNT,
    originals = sym ORIGINALS,
    watched = sym WATCHED,
    watch = sym WATCH,
    trapped = sym TRAPPED,
    sentinel = const SENTINEL,
    second = const SECOND,
    third = const THIRD,
    fourth = const FOURTH,
    fifth = const FIFTH,
    refusal = const crate::abi::INVALID_VALUE,
);

/// The address of stub `index`, after it has been told where to pass calls on.
pub(crate) fn arm(index: usize, original: usize) -> usize {
    ORIGINALS[index].store(original, Ordering::SeqCst);
    WATCHED[index].store(0, Ordering::SeqCst);
    &raw const dpmem_stubs as usize + index * STRIDE
}

/// Sets the value that stubs look for in arguments; 0 for none.
pub(crate) fn watch(value: usize) {
    for noted in &WATCHED {
        noted.store(0, Ordering::SeqCst);
    }
    WATCH.store(value, Ordering::SeqCst);
}

/// The stubs below `used` that saw the watched value, with the argument positions.
pub(crate) fn watched(used: usize) -> Vec<(usize, usize)> {
    let noted = WATCHED.iter().take(used).map(|noted| noted.load(Ordering::SeqCst)).enumerate();
    noted.filter(|&(_, positions)| positions != 0).collect()
}

/// The stub that a call of `function` with sentinels goes through, if it goes through one.
///
/// # Safety
/// `function` must be an entry point of the Unified Runtime: a C function that passes its arguments on through a
/// dispatch table and touches none of them, and the stubs must be in that table.
pub(crate) unsafe fn probe(function: usize) -> Option<usize> {
    // More arguments than any function has, those passed by value on the stack included.
    type Entry =
        unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, Spill) -> crate::abi::UrResult;
    /// Lies on the stack where further arguments would be.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Spill([usize; 32]);
    const { assert!(size_of::<Entry>() == size_of::<usize>()) };
    // SAFETY: the caller vouches for an entry point; a function reads only arguments that it declares, and all that it
    // could declare are there.
    let entry: Entry = unsafe { std::mem::transmute(function) };
    TRAPPED.store(usize::MAX, Ordering::SeqCst);
    let s = SENTINEL;
    // SAFETY: as above; the stub in the table answers before any argument is looked at.
    unsafe { entry(s, s, s, s, s, s, Spill([s; 32])) };
    let trapped = TRAPPED.load(Ordering::SeqCst);
    (trapped < COUNT).then_some(trapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn sum(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, x: f64) -> f64 {
        (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g) as f64 + x
    }

    #[test]
    fn a_stub_passes_calls_on_and_traps_sentinels() {
        type Sum = extern "C" fn(u64, u64, u64, u64, u64, u64, u64, f64) -> f64;
        for index in [3, COUNT - 1] {
            let address = arm(index, sum as *const () as usize);
            // SAFETY: the stub has the calling convention of what it passes calls on to.
            let stub: Sum = unsafe { std::mem::transmute(address) };
            assert_eq!(stub(1, 2, 3, 4, 5, 6, 7, 0.5), 140.5);
            // SAFETY: the stub itself answers the sentinel.
            assert_eq!(unsafe { probe(address) }, Some(index));
        }
        watch(77);
        let address = arm(5, sum as *const () as usize);
        // SAFETY: as above.
        let stub: Sum = unsafe { std::mem::transmute(address) };
        assert_eq!(stub(1, 77, 3, 77, 77, 6, 7, 0.0), (1 + 154 + 9 + 308 + 385 + 36 + 49) as f64);
        assert_eq!(watched(10), [(5, SECOND | FOURTH | FIFTH)]);
        watch(3);
        stub(1, 77, 3, 77, 77, 6, 7, 0.0);
        assert_eq!(watched(10), [(5, THIRD)]);
        watch(77);
        stub(77, 0, 77, 0, 0, 0, 0, 0.0);
        watch(0);
        assert!(watched(10).is_empty());
    }
}
