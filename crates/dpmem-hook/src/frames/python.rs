//! The functions of the Python C API that are used, looked up in the running process.
//!
//! Looked up and not linked, because this crate knows no Python: a program without an interpreter can load it, too.
//!
//! They may unwind: an interpreter that is going (up to Python 3.13) ends the threads that ask for the GIL with
//! `pthread_exit`. See [`super::Held`].

use std::ffi::{CStr, c_char, c_int, c_void};

pub(super) type Object = *mut c_void;

macro_rules! api {
    ($( $(#[$doc:meta])* $field:ident = $name:literal: fn($($argument:ty),*) -> $result:ty; )*) => {
        /// The functions.
        pub(super) struct Api {
            $( $(#[$doc])* pub(super) $field: unsafe extern "C-unwind" fn($($argument),*) -> $result, )*
            /// The type of code objects.
            pub(super) code_type: usize,
        }

        impl Api {
            /// Finds them all, or names the first that is missing.
            pub(super) fn find() -> Result<Self, &'static str> {
                Ok(Api {
                    $(
                        $field: {
                            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                                Ok(name) => name,
                                Err(_) => panic!("a name ends with its NUL"),
                            };
                            let address = symbol(NAME).ok_or($name)?;
                            // SAFETY: the symbol is the C API function of that name; its signature is part of the
                            // documented C API.
                            unsafe {
                                std::mem::transmute::<usize, unsafe extern "C-unwind" fn($($argument),*) -> $result>(address)
                            }
                        },
                    )*
                    code_type: symbol(c"PyCode_Type").ok_or("PyCode_Type")?,
                })
            }
        }
    };
}

api! {
    /// The calling thread's state, also while it doesn't hold the GIL; null if Python doesn't know the thread.
    this_thread_state = "PyGILState_GetThisThreadState": fn() -> Object;
    has_gil = "PyGILState_Check": fn() -> c_int;
    take_gil = "PyGILState_Ensure": fn() -> c_int;
    leave_gil = "PyGILState_Release": fn(c_int) -> ();
    frame_of = "PyThreadState_GetFrame": fn(Object) -> Object;
    frame_back = "PyFrame_GetBack": fn(Object) -> Object;
    frame_code = "PyFrame_GetCode": fn(Object) -> Object;
    attribute = "PyObject_GetAttrString": fn(Object, *const c_char) -> Object;
    to_integer = "PyLong_AsSsize_t": fn(Object) -> isize;
    clear_error = "PyErr_Clear": fn() -> ();
    release = "Py_DecRef": fn(Object) -> ();
    line_at = "PyCode_Addr2Line": fn(Object, c_int) -> c_int;
}

fn symbol(name: &CStr) -> Option<usize> {
    // SAFETY: looks a NUL-terminated name up among the libraries of this process.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address as usize)
}

impl Api {
    /// The calling thread's state; 0 if Python doesn't know the thread or is gone.
    #[inline]
    pub(super) fn this_thread(&self) -> usize {
        // SAFETY: needs neither the GIL nor an initialised interpreter.
        unsafe { (self.this_thread_state)() as usize }
    }

    /// The line of a position in a code object; 0 if it has none.
    ///
    /// # Safety
    /// `code` is a live code object. The GIL isn't needed: the function reads the object's immutable tables and
    /// touches no reference count.
    pub(super) unsafe fn line(&self, code: usize, instruction: u32) -> u32 {
        // SAFETY: see above.
        let line = unsafe { (self.line_at)(code as Object, instruction as c_int) };
        u32::try_from(line).unwrap_or(0)
    }
}
