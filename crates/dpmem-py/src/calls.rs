//! Calls of Python functions on threads of the program's: the thread may not come back, and what a signal handler raises
//! meanwhile is the program's.
//!
//! A daemon thread that is in Python while the interpreter goes stays there ([`Held`]). An exception that can't be raised
//! where it came up, inside an allocation, is kept for the thread that it came up on and raised as soon as that is back in
//! Python: by the trace function of the frame that called ([`crate::pool`]), in the place of what the allocation raises;
//! where that frame can't be traced, by the interpreter, before the program's next step.

use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_long, c_void};
use std::sync::LazyLock;

use dpmem_hook::frames::Held;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

type Object = *mut ffi::PyObject;
type Call = unsafe extern "C-unwind" fn(Object, Object, Object) -> Object;
type TellIgnored = unsafe extern "C-unwind" fn(Object);

// Both are looked up: the declarations in pyo3 say that they never unwind, and that would hold for those of ours of the
// same names, too.
static CALL: LazyLock<Call> = LazyLock::new(|| {
    let address = found(c"PyObject_Call", ffi::PyObject_Call as *mut c_void);
    // SAFETY: it is the C API function of that name, of this signature.
    unsafe { std::mem::transmute::<*mut c_void, Call>(address) }
});
static TELL_IGNORED: LazyLock<TellIgnored> = LazyLock::new(|| {
    let address = found(c"PyErr_WriteUnraisable", ffi::PyErr_WriteUnraisable as *mut c_void);
    // SAFETY: it is the C API function of that name, of this signature.
    unsafe { std::mem::transmute::<*mut c_void, TellIgnored>(address) }
});

fn found(name: &CStr, declared: *mut c_void) -> *mut c_void {
    // SAFETY: looks a NUL-terminated name up among the libraries of this process.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() { declared } else { found }
}

/// Calls a function. No lock may be held.
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let (enter, callee, given) = (*CALL, function.as_ptr(), arguments.as_ptr());
    // SAFETY: the GIL is held, both are alive, and the second is a tuple.
    let answer = Held::around(|| unsafe { enter(callee, given, std::ptr::null_mut()) });
    // SAFETY: the answer is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), answer) }
}

/// Has the interpreter tell of an exception that nobody can catch, which may call Python. No lock may be held.
pub(crate) fn tell_ignored(error: PyErr, r#where: &Bound<'_, PyAny>) {
    let (tell, place) = (*TELL_IGNORED, r#where.as_ptr());
    error.restore(r#where.py());
    // SAFETY: the GIL is held, an exception is set, and the place is alive.
    Held::around(|| unsafe { tell(place) });
}

thread_local! {
    static KEPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Keeps an exception of this thread's. One that is kept already becomes its context.
pub(crate) fn keep(py: Python<'_>, error: PyErr) {
    if let Some(before) = take_kept() {
        came_after(py, &error, before);
    }
    let _ = KEPT.try_with(|kept| kept.borrow_mut().replace(error));
}

/// Notes which exception another came up after.
pub(crate) fn came_after(py: Python<'_>, error: &PyErr, before: PyErr) {
    if error.context(py).is_none() && !error.value(py).is(before.value(py)) {
        error.set_context(py, Some(before));
    }
}

/// The exception that is kept for this thread; it is no more.
pub(crate) fn take_kept() -> Option<PyErr> {
    KEPT.try_with(|kept| kept.borrow_mut().take()).ok().flatten()
}

/// Has the interpreter raise what is kept before this thread's next step in Python. No Python code of ours may run on the
/// thread in between.
pub(crate) fn raise_kept_soon(py: Python<'_>) {
    if is_main_thread() {
        // SAFETY: the GIL is held; `raise_kept` takes any argument.
        if unsafe { ffi::Py_AddPendingCall(Some(raise_kept), std::ptr::null_mut()) } != 0 {
            // The queue is full. Better an interrupt than a lost exception.
            take_kept();
            // SAFETY: the GIL is held.
            unsafe { ffi::PyErr_SetInterrupt() };
        }
    } else if let Some(error) = take_kept() {
        // Pending calls are the main thread's. Into another one only a class can be sent.
        // SAFETY: the GIL is held, and the class of an exception is one.
        unsafe { ffi::PyThreadState_SetAsyncExc(own_ident(), error.get_type(py).as_ptr()) };
    }
}

fn own_ident() -> c_long {
    // SAFETY: asks for the calling thread; Python names threads by that number.
    unsafe { libc::pthread_self().cast_signed() }
}

fn is_main_thread() -> bool {
    // SAFETY: asks for numbers.
    unsafe { libc::getpid() == libc::gettid() }
}

/// Called by the interpreter, on the main thread, with the GIL. The answer says whether an exception is raised.
extern "C" fn raise_kept(_: *mut c_void) -> c_int {
    let raised = Python::try_attach(|py| take_kept().map(|error| error.restore(py)));
    if raised.flatten().is_some() { -1 } else { 0 }
}
