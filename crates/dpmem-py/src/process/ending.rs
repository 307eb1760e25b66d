//! The end of a run: who takes the report, what is written after the interpreter is gone, and how the process
//! dies.
//!
//! The summary is written from a C `atexit` handler. That runs after the interpreter is finalised, so it is
//! the last output of the process, and it is registered when the report is taken, so it runs before the
//! clean-up of libraries loaded earlier.
#![allow(unsafe_code)] // `atexit`, `_exit` and signals

use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::output::{STDERR, STDOUT};
use super::termination;

/// The process that reports; 0 before it is known.
static OWNER: AtomicI32 = AtomicI32::new(0);

const OPEN: u8 = 0;
const CLAIMED: u8 = 1;
const SETTLED: u8 = 2;
/// The report: `OPEN` until someone takes it, `CLAIMED` while it is made, `SETTLED` when its texts are in
/// `LAST_WORDS`.
static REPORT: AtomicU8 = AtomicU8::new(OPEN);

/// How long a late comer waits for the one who makes the report. Longer than a termination signal grants it.
const PATIENCE: Duration = Duration::from_secs(3);

/// The signal to die by in the end and, so that it is nobody else's death, the process that is to die.
static DEATH: Mutex<Option<(i32, i32)>> = Mutex::new(None);

static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);
static ON_EXIT: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

#[derive(Default)]
struct LastWords {
    stderr: String,
    stdout: String,
    exit_instead: Option<i32>,
    program_succeeded: bool,
}

/// Registers this module's functions.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(process_arm, module)?)?;
    module.add_function(wrap_pyfunction!(process_claim, module)?)?;
    module.add_function(wrap_pyfunction!(process_settle, module)?)?;
    module.add_function(wrap_pyfunction!(process_die_at_exit, module)?)?;
    module.add_function(wrap_pyfunction!(process_terminated_by, module)?)
}

/// Makes this process the one that reports. `on_signal` is called with the number of a termination signal, on
/// a thread of its own; `on_exit` with the code given to `os._exit`. Both are expected to claim and settle
/// the report.
#[pyfunction]
fn process_arm(py: Python<'_>, on_signal: Py<PyAny>, on_exit: Py<PyAny>) -> PyResult<()> {
    STDOUT.remember();
    STDERR.remember();
    if let Ok(mut slot) = ON_EXIT.lock() {
        *slot = Some(on_exit);
    }
    OWNER.store(process_id(), Ordering::Release);
    replace_exit(py)?;
    termination::install(on_signal);
    dpmem_hook::when_in(termination::stand_by);
    Ok(())
}

/// Asks for the right to make the report: true once in the life of the process, and never in a forked child.
/// When another thread is at it, waits until it is done.
#[pyfunction]
fn process_claim(py: Python<'_>) -> bool {
    if !owns_process() {
        return false;
    }
    if REPORT.compare_exchange(OPEN, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        return true;
    }
    py.detach(|| wait_until_settled(PATIENCE));
    false
}

/// Ends a claim. After the interpreter is gone `stderr` and `stdout` are written and the exit code becomes
/// `exit_instead`.
#[pyfunction]
#[pyo3(signature = (stderr, stdout, *, exit_instead = None, program_succeeded = false))]
fn process_settle(stderr: String, stdout: String, exit_instead: Option<i32>, program_succeeded: bool) {
    if let Ok(mut slot) = LAST_WORDS.lock() {
        *slot = Some(LastWords { stderr, stdout, exit_instead, program_succeeded });
    }
    call_at_exit();
    REPORT.store(SETTLED, Ordering::Release);
}

/// Has this process, forked child or not, die by `signal` when the interpreter is gone, as CPython does for
/// `SIGINT`.
#[pyfunction]
fn process_die_at_exit(signal: i32) {
    if let Ok(mut slot) = DEATH.lock() {
        *slot = Some((process_id(), signal));
    }
    call_at_exit();
}

/// The termination signal that arrived, or 0.
#[pyfunction]
fn process_terminated_by() -> i32 {
    termination::arrived()
}

/// Whether this is the process that reports, and no forked child of it.
pub(super) fn owns_process() -> bool {
    OWNER.load(Ordering::Acquire) == process_id()
}

/// Whether nobody has begun to make the report.
pub(super) fn report_is_open() -> bool {
    REPORT.load(Ordering::Acquire) == OPEN
}

/// Waits while another thread makes the report, `limit` at most. The caller must not be attached to the
/// interpreter.
pub(super) fn wait_until_settled(limit: Duration) {
    let start = Instant::now();
    while REPORT.load(Ordering::Acquire) == CLAIMED && start.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Writes what is still to be written, once. The result is the exit code to use instead.
pub(super) fn write_last_words() -> Option<i32> {
    let words = LAST_WORDS.try_lock().ok()?.take()?;
    flush_c_stdout();
    let _ = STDERR.write(words.stderr.as_bytes());
    let written = if words.stdout.is_empty() { Ok(()) } else { STDOUT.write(words.stdout.as_bytes()) };
    // A reader that left asked for silence.
    let lost = written.err().filter(|error| error.kind() != std::io::ErrorKind::BrokenPipe);
    if let Some(error) = &lost {
        let text = format!("dpmem: the report was for standard output and could not be written: {error}\n");
        let _ = STDERR.write(text.as_bytes());
    }
    // What was asked for could not be done; a program that failed by itself keeps its own code.
    words.exit_instead.or((lost.is_some() && words.program_succeeded).then_some(2))
}

fn call_at_exit() {
    // SAFETY: `at_exit` is an `extern "C"` function of this library, which is never unloaded (CPython keeps
    // extension modules). When the table is full the call fails and the summary is lost, nothing else. A
    // second registration finds nothing to do.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    let exit_instead = if owns_process() { write_last_words() } else { None };
    let interrupted = DEATH.try_lock().ok().and_then(|slot| *slot);
    let terminated = Some(termination::arrived()).filter(|&signal| signal != 0);
    let due = interrupted.filter(|&(process, _)| process == process_id()).map(|(_, signal)| signal);
    if let Some(signal) = terminated.or(due) {
        termination::die_by(signal);
    }
    if let Some(code) = exit_instead {
        // SAFETY: glibc allows `exit` from an `atexit` handler: the remaining handlers run and the last code
        // counts.
        unsafe { libc::exit(code) };
    }
}

/// `os._exit(status)`: takes the report if this process still owes one, then exits without clean-up.
#[pyfunction(name = "_exit")]
fn exit_now(py: Python<'_>, status: i32) {
    if owns_process() {
        let callback =
            ON_EXIT.lock().ok().and_then(|slot| slot.as_ref().map(|callback| callback.clone_ref(py)));
        if let Some(Err(error)) = callback.map(|callback| callback.call1(py, (status,))) {
            let _ = STDERR.write(format!("dpmem: no report: {error}\n").as_bytes());
        }
        let instead = write_last_words();
        exit_without_cleanup(instead.unwrap_or(status));
    }
    exit_without_cleanup(status);
}

/// Puts [`exit_now`] in the place of `os._exit`.
fn replace_exit(py: Python<'_>) -> PyResult<()> {
    let posix = py.import("posix")?;
    let replacement = wrap_pyfunction!(exit_now, &posix)?;
    posix.setattr("_exit", &replacement)?;
    py.import("os")?.setattr("_exit", replacement)
}

fn exit_without_cleanup(status: i32) -> ! {
    // SAFETY: takes any integer and does not return.
    unsafe { libc::_exit(status) }
}

fn process_id() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() }
}

fn flush_c_stdout() {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        fn ftrylockfile(file: *mut libc::FILE) -> i32;
        fn funlockfile(file: *mut libc::FILE);
    }
    // SAFETY: `stdout` is the C library's own stream, which lives as long as the process. A thread that holds
    // its lock and never returns must not hang us, hence the try; the lock is recursive, so `fflush` may take
    // it again.
    unsafe {
        if ftrylockfile(stdout) == 0 {
            libc::fflush(stdout);
            funlockfile(stdout);
        }
    }
}
