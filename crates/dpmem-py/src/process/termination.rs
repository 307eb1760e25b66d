//! `SIGTERM` and `SIGHUP`: the report is made before the process dies, by the same signal and within
//! [`GRACE_S`].
//!
//! Where the program left the default action in place, a C handler takes its place. Python does not see it:
//! `signal.getsignal` still says `SIG_DFL`, and a program that installs its own handler replaces ours.
//!
//! The handler arms a kernel timer that repeats the signal, and wakes a thread that attaches to the interpreter
//! and calls back. The timer's signal, recognised by [`MARK`], kills: so a hang anywhere, in the handler included,
//! costs the report and never the death.
//!
//! The thread is made when the program brings SYCL up ([`stand_by`]), which makes threads of its own then. Before
//! that the handler makes it, because CPython 3.12 and later warn every program that forks beside a second
//! thread. `pthread_create` is not on the list of functions that a handler may call: where it interrupted the
//! allocator on the same thread it can hang; that is the case the timer is for.
//!
//! A program that signals itself goes no further, as by default, as long as SYCL is not up. Once it is, the OpenCL
//! runtime has a handler of its own in front that sends every signal again as if this thread had raised it; then no
//! signal can be told from one that came from outside, and the program may run on for a moment.
#![allow(unsafe_code)] // signal handlers, timers, threads

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::{self, MaybeUninit};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use super::ending::{owns_process, report_is_open, wait_until_settled, write_last_words};
use super::output::STDERR;

/// Seconds from the signal to the death at the latest.
const GRACE_S: i64 = 2;
const SIGNALS: [i32; 2] = [libc::SIGTERM, libc::SIGHUP];

static ARRIVED: AtomicI32 = AtomicI32::new(0);
static ON_SIGNAL: Mutex<Option<Py<PyAny>>> = Mutex::new(None);
/// Its address marks our timer's signal.
static MARK: u8 = 0;
/// The interpreter's `PyGILState_Check`, which is no part of the stable ABI; 0 when there is none.
static IS_ATTACHED: AtomicUsize = AtomicUsize::new(0);
/// Whether a thread waits on [`WAKE`].
static STANDING_BY: AtomicBool = AtomicBool::new(false);
static WAKE: Semaphore = Semaphore(UnsafeCell::new(MaybeUninit::uninit()));

/// A POSIX semaphore, the one way to wake a thread that a handler may use.
struct Semaphore(UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: the semaphore is made in `stand_by` before `STANDING_BY` says that it is there, and from then on only
// `sem_post` and `sem_wait` touch it, which are made for use by several threads.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    fn pointer(&self) -> *mut libc::sem_t {
        self.0.get().cast()
    }
}

/// Makes the thread that answers signals. Called once, when the program has brought SYCL up.
pub(super) fn stand_by() {
    // SAFETY: the semaphore is a static that nothing else touches yet; not shared with processes, at 0.
    if unsafe { libc::sem_init(WAKE.pointer(), 0, 0) } != 0 {
        return;
    }
    let answer = || {
        keep_other_signals_away(0);
        // SAFETY: the semaphore was made before this thread. An interrupted wait is taken up again.
        while unsafe { libc::sem_wait(WAKE.pointer()) } != 0 {}
        on_thread(ptr::null_mut());
    };
    if std::thread::Builder::new().name("dpmem-signal".into()).spawn(answer).is_ok() {
        STANDING_BY.store(true, Ordering::Release);
    }
}

/// Has the report made on another thread.
fn wake_thread() -> bool {
    if STANDING_BY.load(Ordering::Acquire) {
        // SAFETY: the semaphore is there; async-signal-safe.
        return unsafe { libc::sem_post(WAKE.pointer()) } == 0;
    }
    start_thread()
}

/// Takes the place of the default action of each signal that has it.
pub(super) fn install(on_signal: Py<PyAny>) {
    if let Ok(mut slot) = ON_SIGNAL.lock() {
        *slot = Some(on_signal);
    }
    // SAFETY: a C string and the handle of the global scope.
    let check = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PyGILState_Check".as_ptr()) };
    IS_ATTACHED.store(check as usize, Ordering::Relaxed);
    for signal in SIGNALS {
        if handler_of(signal) == libc::SIG_DFL {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) = on_arrival;
            // A signal that comes while ours is handled must get through: the timer's may be the way out of a
            // hang.
            let flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NODEFER | libc::SA_ONSTACK;
            set_handler(signal, handler as libc::sighandler_t, flags);
        }
    }
}

/// The signal that arrived, or 0.
pub(super) fn arrived() -> i32 {
    if owns_process() { ARRIVED.load(Ordering::Acquire) } else { 0 }
}

/// Dies by `signal`. Async-signal-safe.
pub(super) fn die_by(signal: i32) -> ! {
    set_handler(signal, libc::SIG_DFL, 0);
    let mut only = MaybeUninit::uninit();
    // SAFETY: the set is written before it is used; `kill` with our own process id and a valid signal has no
    // preconditions. All of these are async-signal-safe.
    unsafe {
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, only.as_ptr(), ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
    wait_for_death()
}

fn wait_for_death() -> ! {
    loop {
        // SAFETY: no preconditions; async-signal-safe.
        unsafe { libc::pause() };
    }
}

extern "C" fn on_arrival(signal: i32, info: *mut libc::siginfo_t, _context: *mut c_void) {
    if !owns_process() {
        die_by(signal); // a forked child: as without us
    }
    let cause = Cause::of(info);
    if cause == Cause::OurTimer {
        let _ = STDERR
            .write(b"dpmem: no report: the process was told to end and did not let go of Python in time\n");
        die_by(signal);
    }
    if ARRIVED.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return; // already dying
    }
    // SAFETY: the C library's `errno` of this thread; saved and restored, so that the interrupted code sees
    // its own.
    let errno = unsafe { *libc::__errno_location() };
    let attached = is_attached();
    let timed = start_timer(signal);
    // With SYCL up, see the head of this file, every signal looks like one of our own.
    let certain = !STANDING_BY.load(Ordering::Acquire);
    let own = matches!(cause, Cause::OwnProcess | Cause::OwnThread);
    if timed && certain && attached && own && report_is_open() {
        // Python's `os.kill` keeps the interpreter, so this thread is inside that call and nothing of Python
        // is half done. Nor is the report: it may be this thread that makes it.
        report_and_die(signal);
    }
    if !timed || !wake_thread() {
        die_by(signal);
    }
    if certain && !attached && cause == Cause::OwnThread {
        // Python's `signal.raise_signal` lets go of the interpreter; it must not return.
        wait_for_death();
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Where a signal came from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    OurTimer,
    /// `kill` called by this process.
    OwnProcess,
    /// `raise` called by this thread, or `pthread_kill` by another one.
    OwnThread,
    Elsewhere,
}

impl Cause {
    fn of(info: *const libc::siginfo_t) -> Self {
        // SAFETY: the handler is installed with `SA_SIGINFO`, so the kernel passes a valid `siginfo_t`.
        // `si_value` is read only for a timer's signal and `si_pid` only for a sent one, for which the kernel
        // fills them.
        unsafe {
            match (*info).si_code {
                libc::SI_TIMER if (*info).si_value().sival_ptr == mark() => Self::OurTimer,
                libc::SI_USER if (*info).si_pid() == libc::getpid() => Self::OwnProcess,
                libc::SI_TKILL if (*info).si_pid() == libc::getpid() => Self::OwnThread,
                _ => Self::Elsewhere,
            }
        }
    }
}

/// Makes the report, then dies. Runs on a thread of its own.
extern "C" fn on_thread(_: *mut c_void) -> *mut c_void {
    let signal = ARRIVED.load(Ordering::Acquire);
    keep_other_signals_away(signal);
    report_and_die(signal)
}

fn report_and_die(signal: i32) -> ! {
    // The callback runs Python; a panic must not cross the C boundary above, and the death is due either way.
    let _ = panic::catch_unwind(AssertUnwindSafe(|| {
        if report_is_open() {
            Python::try_attach(|py| {
                let callback = ON_SIGNAL.lock().ok().and_then(|slot| slot.as_ref().map(|f| f.clone_ref(py)));
                if let Some(Err(error)) = callback.map(|callback| callback.call1(py, (signal,))) {
                    let _ = STDERR.write(format!("dpmem: no report: {error}\n").as_bytes());
                }
            });
        } else {
            wait_until_settled(Duration::from_secs(GRACE_S as u64));
        }
        write_last_words();
    }));
    die_by(signal)
}

/// Whether this thread is attached to the interpreter.
fn is_attached() -> bool {
    let address = IS_ATTACHED.load(Ordering::Relaxed);
    if address == 0 {
        return false;
    }
    // SAFETY: the address is that of CPython's `int PyGILState_Check(void)`, which any thread may call while
    // the interpreter exists; it only reads.
    unsafe {
        let check: extern "C" fn() -> i32 = mem::transmute(address);
        check() == 1
    }
}

fn mark() -> *mut c_void {
    (&raw const MARK).cast_mut().cast()
}

/// Has the kernel send `signal` again, marked, after the grace period. System calls only.
fn start_timer(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid `sigevent`, `itimerspec` and timer id; the pointers are to live
    // locals of the types that the two system calls take (a kernel timer id is an int). `CLOCK_MONOTONIC` and
    // the signal are valid.
    unsafe {
        let mut event: libc::sigevent = mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = signal;
        event.sigev_value = libc::sigval { sival_ptr: mark() };
        let mut timer: i32 = 0;
        let made =
            libc::syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
        let mut once: libc::itimerspec = mem::zeroed();
        once.it_value.tv_sec = GRACE_S;
        let nothing = ptr::null_mut::<libc::itimerspec>();
        made == 0 && libc::syscall(libc::SYS_timer_settime, timer, 0, &raw const once, nothing) == 0
    }
}

fn start_thread() -> bool {
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the thread id is written before it is read, attributes may be null, and `on_thread` takes a
    // null argument. It ends with the process, so detaching is all that is owed.
    unsafe {
        let started = libc::pthread_create(thread.as_mut_ptr(), ptr::null(), on_thread, ptr::null_mut()) == 0;
        if started {
            libc::pthread_detach(thread.assume_init());
        }
        started
    }
}

/// The program's signals belong on the program's threads; only our timer's may come here, which repeats `signal` (0:
/// none yet).
fn keep_other_signals_away(signal: i32) {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is written before it is used; `signal` and the `how` are valid.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        if signal != 0 {
            libc::sigdelset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut());
    }
}

fn handler_of(signal: i32) -> libc::sighandler_t {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action asks only; the old one is written to a pointer valid for that, and zero bytes
    // are valid too.
    unsafe {
        libc::sigaction(signal, ptr::null(), now.as_mut_ptr());
        now.assume_init().sa_sigaction
    }
}

fn set_handler(signal: i32, handler: libc::sighandler_t, flags: i32) {
    // SAFETY: all-zero bytes are a valid `sigaction` with an empty mask. `handler` is `SIG_DFL` or an `extern
    // "C"` function with the three parameters that `SA_SIGINFO` in `flags` calls for; it lives as long as the
    // process.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        libc::sigaction(signal, &raw const action, ptr::null_mut());
    }
}
