//! Writing past the program: straight to file descriptors 1 and 2, and only while they still are what they
//! were at the start.
//!
//! The program may have closed or replaced them; then nothing is written. A closed pipe ends quietly, and
//! `SIGPIPE` does not reach the program.
#![allow(unsafe_code)] // plain libc calls on integers and local buffers

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

/// Registers this module's functions.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(process_write, module)?)?;
    module.add_function(wrap_pyfunction!(process_terminal, module)?)
}

/// Writes text to standard output (1) or standard error (2), past whatever the program made of `sys.stdout`.
#[pyfunction]
fn process_write(py: Python<'_>, descriptor: i32, text: String) {
    // Nobody is left to tell of a failure.
    let _ = py.detach(|| write_all(descriptor, text.as_bytes()));
}

/// The width in columns to write for and whether to colour, for standard output (1) or standard error (2).
#[pyfunction]
fn process_terminal(descriptor: i32) -> (u16, bool) {
    let terminal = terminal_width(descriptor);
    let variable = |name| std::env::var_os(name);
    let width = dpmem_cli::width(variable("COLUMNS").as_deref(), terminal);
    // SAFETY: takes any integer.
    let is_terminal = unsafe { libc::isatty(descriptor) } == 1;
    let colour = dpmem_cli::colour(is_terminal, variable("NO_COLOR").as_deref(), variable("TERM").as_deref());
    (width, colour)
}

fn terminal_width(descriptor: i32) -> Option<u16> {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: `TIOCGWINSZ` writes one `winsize` to the pointer, which is valid for that; an invalid
    // descriptor is an error code. All-zero bytes are a valid `winsize`, so it is initialised either way.
    unsafe {
        let done = libc::ioctl(descriptor, libc::TIOCGWINSZ, size.as_mut_ptr()) == 0;
        done.then(|| size.assume_init().ws_col)
    }
}

/// What a standard stream was at the start: device and inode of its file, 0 when it was closed.
pub(super) struct Stream {
    descriptor: i32,
    device: AtomicU64,
    inode: AtomicU64,
}

/// Standard output.
pub(super) static STDOUT: Stream = Stream::new(libc::STDOUT_FILENO);
/// Standard error.
pub(super) static STDERR: Stream = Stream::new(libc::STDERR_FILENO);

impl Stream {
    const fn new(descriptor: i32) -> Self {
        Self { descriptor, device: AtomicU64::new(0), inode: AtomicU64::new(0) }
    }

    /// Remembers what the descriptor is now.
    pub(super) fn remember(&self) {
        let (device, inode) = file_behind(self.descriptor).unwrap_or((0, 0));
        self.device.store(device, Ordering::Relaxed);
        self.inode.store(inode, Ordering::Relaxed);
    }

    /// Writes if the descriptor still is what it was; else the error says that it is closed or another.
    pub(super) fn write(&self, text: &[u8]) -> io::Result<()> {
        if !self.unchanged() {
            return Err(io::Error::other("the program closed or replaced it"));
        }
        write_all(self.descriptor, text)
    }

    fn unchanged(&self) -> bool {
        let then = (self.device.load(Ordering::Relaxed), self.inode.load(Ordering::Relaxed));
        then != (0, 0) && file_behind(self.descriptor) == Some(then)
    }
}

fn file_behind(descriptor: i32) -> Option<(u64, u64)> {
    let mut found = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `fstat` writes one `stat` to a pointer valid for that; all-zero bytes are a valid `stat`.
    unsafe {
        (libc::fstat(descriptor, found.as_mut_ptr()) == 0).then(|| {
            let found = found.assume_init();
            (found.st_dev, found.st_ino)
        })
    }
}

/// Writes all of it, waiting where the descriptor is non-blocking.
pub(super) fn write_all(descriptor: i32, mut text: &[u8]) -> io::Result<()> {
    let _quiet = WithoutSigpipe::new();
    while !text.is_empty() {
        // SAFETY: pointer and length describe the live slice `text`.
        let written = unsafe { libc::write(descriptor, text.as_ptr().cast(), text.len()) };
        match usize::try_from(written) {
            Ok(count) => text = &text[count..],
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => wait_until_writable(descriptor),
                    _ => return Err(error),
                }
            }
        }
    }
    Ok(())
}

fn wait_until_writable(descriptor: i32) {
    let mut waited = libc::pollfd { fd: descriptor, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one live `pollfd`, count 1. An error ends the wait; the write that follows reports what is
    // wrong.
    unsafe { libc::poll(&raw mut waited, 1, 1000) };
}

/// Keeps `SIGPIPE` from this thread for as long as it lives, and swallows one that its writes caused.
struct WithoutSigpipe {
    only_sigpipe: libc::sigset_t,
    before: libc::sigset_t,
    was_pending: bool,
}

impl WithoutSigpipe {
    fn new() -> Self {
        let mut only_sigpipe = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        let mut pending = MaybeUninit::uninit();
        // SAFETY: each call writes one `sigset_t` to a pointer valid for that before it is read; none of them
        // fails for these arguments (a valid signal number, a valid `how`).
        unsafe {
            libc::sigemptyset(only_sigpipe.as_mut_ptr());
            libc::sigaddset(only_sigpipe.as_mut_ptr(), libc::SIGPIPE);
            libc::sigpending(pending.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, only_sigpipe.as_ptr(), before.as_mut_ptr());
            let was_pending = libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1;
            Self { only_sigpipe: only_sigpipe.assume_init(), before: before.assume_init(), was_pending }
        }
    }
}

impl Drop for WithoutSigpipe {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: all pointers are to live, initialised values; a null `siginfo_t` is allowed.
        unsafe {
            if !self.was_pending {
                libc::sigtimedwait(&raw const self.only_sigpipe, ptr::null_mut(), &raw const at_once);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
        }
    }
}
