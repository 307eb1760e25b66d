//! The calling thread's Python frames, read without the GIL and without taking a reference.
//!
//! A thread that allocates has usually let the GIL go, but its own frames stand still while it is in C: nobody else
//! unwinds them, and they keep their code objects alive. So they can be read as plain memory, once it is known where
//! in each struct the wanted fields are. [`calibrate`] finds that out against the public API for the running
//! interpreter; nothing is assumed from its version. If it fails, [`are_readable`] stays false and stacks are left out.
//!
//! Threads: `calibrate` needs the GIL. Everything else may run on any thread, with it or without.

mod calibrate;
mod layout;
mod python;

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dpmem_core::{Frame, LibraryPaths, RawFrame};

pub use calibrate::Samples;
use layout::Layout;
use python::Api;

use crate::error::Error;

/// The most frames that can be kept of a stack.
pub const MAX_DEPTH: usize = 128;
/// A chain longer than this many links is taken for broken.
const LINKS_MAX: usize = 100_000;

static LAYOUT: OnceLock<(Api, Layout)> = OnceLock::new();
static READABLE: AtomicBool = AtomicBool::new(false);

/// Learns where the running interpreter keeps what. The caller must hold the GIL and be at least three Python frames
/// deep; `samples` are known strings to recognise the layout of strings by.
///
/// # Errors
/// [`Error::Frames`] names the first thing that could not be found.
///
/// # Safety
/// The GIL is held, and `samples` are addresses of live `str` objects with the stated contents.
pub unsafe fn calibrate(samples: &Samples) -> Result<(), Error> {
    if LAYOUT.get().is_none() {
        let api = Api::find().map_err(|missing| Error::Frames(format!("no `{missing}` in this process")))?;
        // SAFETY: passed on to our caller.
        let layout = unsafe { calibrate::layout(&api, samples) }.map_err(Error::Frames)?;
        let _ = LAYOUT.set((api, layout));
    }
    READABLE.store(true, Ordering::Release);
    Ok(())
}

/// Whether frames can be read.
pub fn are_readable() -> bool {
    READABLE.load(Ordering::Acquire)
}

/// What of the C API tells about threads, apart from any layout.
fn api() -> Option<&'static Api> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    API.get_or_init(|| Api::find().ok()).as_ref()
}

/// Whether Python knows the calling thread.
pub(crate) fn thread_is_pythons() -> bool {
    api().is_some_and(|api| api.this_thread() != 0)
}

/// Whether the calling thread holds the GIL.
pub(crate) fn thread_has_gil() -> bool {
    // SAFETY: the function may be called at any time, on any thread.
    thread_is_pythons() && api().is_some_and(|api| unsafe { (api.has_gil)() } != 0)
}

/// Does some work while holding the GIL, on a thread that Python knows; for [`crate::pool`]'s way out of a shortage
/// only. `None` on other threads.
///
/// What lies above on this thread may have let the GIL go without its bindings' knowledge, so the C API itself is asked.
pub(crate) fn with_gil<T>(work: impl FnOnce() -> T) -> Option<T> {
    let api = api().filter(|api| api.this_thread() != 0)?;
    // SAFETY: Python knows the thread. If the interpreter is going, the thread stays in here.
    let state = Held::around(|| unsafe { (api.take_gil)() });
    let result = work();
    // SAFETY: ends what was begun above, on the same thread.
    unsafe { (api.leave_gil)(state) };
    Some(result)
}

/// Keeps a thread that its interpreter ends from coming up through frames of ours.
///
/// An interpreter that is going, up to Python 3.13, has a thread that asks for the GIL unwound by force. Rust can neither
/// let that pass nor catch it, and would abort the process. So the thread stays where it is until the process ends, as
/// it does from Python 3.14 on.
pub struct Held(());

impl Held {
    /// Does some work that ends the thread if the interpreter is going. No lock may be held, and nothing in `work` may
    /// panic.
    pub fn around<T>(work: impl FnOnce() -> T) -> T {
        let held = Held(());
        let result = work();
        std::mem::forget(held);
        result
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        loop {
            std::thread::sleep(Duration::from_secs(3600));
        }
    }
}

/// Stops reading frames: the interpreter is about to go.
pub fn close() {
    READABLE.store(false, Ordering::Release);
}

thread_local! {
    /// Whether this thread has been found to run Python; a thread that has once is taken for one that does.
    static PYTHONS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is one that runs Python; true as well where that can't be told.
#[inline]
pub(crate) fn runs_python() -> bool {
    PYTHONS.try_with(Cell::get).unwrap_or(false) || finds_python()
}

#[cold]
fn finds_python() -> bool {
    let Some((api, layout)) = LAYOUT.get().filter(|_| are_readable()) else { return true };
    let thread = api.this_thread();
    // SAFETY: `thread` is this thread's own state, and calibration has found where its frame is.
    let found = thread != 0 && unsafe { layout.first_frame(thread) } != 0;
    if found {
        let _ = PYTHONS.try_with(|pythons| pythons.set(true));
    }
    found
}

/// Whether the calling thread is in the line that `before` was in, at the same instruction or further on.
pub(crate) fn is_in_line_of(before: &RawFrame) -> bool {
    const SEARCHED: usize = 32;
    let Some((api, _)) = LAYOUT.get().filter(|_| are_readable()) else { return false };
    let mut buffer = [const { MaybeUninit::uninit() }; SEARCHED];
    let same = |now: &&RawFrame| {
        (now.code, now.name, now.first_line) == (before.code, before.name, before.first_line)
    };
    let Some(now) = capture(&mut buffer).iter().find(same) else { return false };
    // SAFETY: the frame was captured on this thread and still stands, so its code object is alive.
    let line = |instruction| unsafe { api.line(now.code, instruction) };
    now.instruction >= before.instruction && line(now.instruction) == line(before.instruction)
}

/// The calling thread's frames, innermost first, as many as fit into `buffer`; none on a thread without Python.
pub fn capture(buffer: &mut [MaybeUninit<RawFrame>]) -> &[RawFrame] {
    let Some((api, layout)) = LAYOUT.get() else { return &[] };
    let thread = api.this_thread();
    if thread == 0 {
        return &[];
    }
    // SAFETY: `thread` is this thread's own state, and calibration has found where its frame is.
    let mut frame = unsafe { layout.first_frame(thread) };
    let mut len = 0;
    for _ in 0..LINKS_MAX {
        if frame == 0 || len == buffer.len() {
            break;
        }
        // SAFETY: `frame` is one of this thread's frames, which stand still while it is in here.
        let (raw, previous) = unsafe { (layout.raw_frame(frame), layout.previous(frame)) };
        if let Some(raw) = raw {
            buffer[len].write(raw);
            len += 1;
        }
        frame = previous;
    }
    // SAFETY: the first `len` entries have been written.
    unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast(), len) }
}

/// The calling thread's stack, innermost first, as it would be recorded.
pub fn here(depth: usize) -> Vec<Frame> {
    let mut buffer = [const { MaybeUninit::uninit() }; MAX_DEPTH];
    capture(&mut buffer[..depth.min(MAX_DEPTH)]).iter().map(crate::recorder::resolve).collect()
}

/// Turns a captured frame into strings and a line. Must be called while the frame is still there.
pub(crate) fn resolve(raw: &RawFrame, libraries: Option<&LibraryPaths>) -> Frame {
    let Some((api, layout)) = LAYOUT.get() else { return resolve_none(raw) };
    // SAFETY: the frame was captured on this thread and still stands, so its code object and strings are alive.
    let (file, function) = unsafe { (layout.file(raw.code), layout.text(raw.name)) };
    // SAFETY: as above. The function only reads the code object.
    let line = unsafe { api.line(raw.code, raw.instruction) };
    let library = libraries.is_some_and(|paths| paths.contains(&file));
    Frame { file: file.into(), line, function: function.into(), library }
}

/// A frame of which nothing is known.
pub(crate) fn resolve_none(_raw: &RawFrame) -> Frame {
    Frame { file: "".into(), line: 0, function: "".into(), library: false }
}
