//! The stubs that stand in for the runtime's kernel launches.
//!
//! The arguments of these functions differ from one runtime to the next, so the stubs don't know them: they keep every
//! argument register, call [`launching`] and go on to the original with a jump, so that arguments on the stack are where
//! the caller put them. A launch that the runtime then refuses has been counted; the counts serve comparisons only.

use std::arch::global_asm;
use std::cell::Cell;
use std::sync::atomic::AtomicUsize;

use crate::functions::{Function, ORIGINALS};
use crate::recorder;

/// Launches of a thread that are all looked at; after them, every [`SAMPLED`]th is, and stands for that many.
const ALL_UP_TO: u64 = 4096;
const SAMPLED: u64 = 16;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

unsafe extern "C" {
    fn dpmem_kernel_launch();
    fn dpmem_kernel_launch_with_arguments();
}

macro_rules! stub {
    ($name:literal, $function:expr) => {
        global_asm!(
            ".pushsection .text.dpmem_launch,\"ax\",@progbits",
            ".p2align 4",
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!($name, ":"),
            "push rbp",
            "mov rbp, rsp",
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "call {launching}",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "pop rbp",
            "jmp qword ptr [rip + {originals} + {offset}]",
            ".popsection",
            launching = sym launching,
            originals = sym ORIGINALS,
            offset = const size_of::<AtomicUsize>() * $function as usize,
        );
    };
}

stub!("dpmem_kernel_launch", Function::KernelLaunch);
stub!("dpmem_kernel_launch_with_arguments", Function::KernelLaunchWithArguments);

/// What stands in for a launch function.
pub(crate) fn stub(function: Function) -> usize {
    match function {
        Function::KernelLaunchWithArguments => dpmem_kernel_launch_with_arguments as *const () as usize,
        _ => dpmem_kernel_launch as *const () as usize,
    }
}

/// A launch is about to be forwarded.
extern "C" fn launching() {
    if !recorder::is_on() {
        return;
    }
    let count = COUNT.try_with(|count| count.replace(count.get() + 1)).unwrap_or(0);
    if count < ALL_UP_TO {
        recorder::enter(|recording, _| recording.launched(1));
    } else if count.is_multiple_of(SAMPLED) {
        recorder::enter(|recording, _| recording.launched(SAMPLED));
    }
}
