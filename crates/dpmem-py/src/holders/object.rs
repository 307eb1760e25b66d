//! Objects of the interpreter while it is held still: their type, their count of references, what they refer to.
//!
//! Owns every raw access to an object. A [`Ref`] borrows from a [`Halt`]. As long as that lives, the GIL is held, the
//! collector is off and nothing of the program runs: what is called are `tp_traverse` functions, which may not change
//! anything, and descriptors of built-in types. So an object that was alive when it was met stays alive. No reference
//! is taken but for the length of one call.
#![allow(unsafe_code)] // walking objects means calling `tp_traverse` and reading headers

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The interpreter held still: the GIL is held (`py`) and the collector switched off until this is dropped.
pub(super) struct Halt<'py> {
    py: Python<'py>,
    collecting: bool,
}

impl<'py> Halt<'py> {
    pub(super) fn new(py: Python<'py>) -> Self {
        // SAFETY: the thread is attached, as `py` shows; the call has no other precondition.
        let collecting = unsafe { ffi::PyGC_Disable() } != 0;
        Halt { py, collecting }
    }

    pub(super) fn py(&self) -> Python<'py> {
        self.py
    }

    /// The object at an address; none for null.
    ///
    /// # Safety
    /// It must be that of an object which is alive now.
    unsafe fn object_at(&self, address: usize) -> Option<Ref<'_>> {
        (address != 0).then_some(Ref { pointer: address as *mut ffi::PyObject, halt: PhantomData })
    }

    /// The items of a list that nobody changes.
    pub(super) fn all<'h>(&'h self, list: &'h Bound<'py, PyList>) -> Vec<Ref<'h>> {
        let mut all = Vec::with_capacity(list.len());
        // An item of a list is a living object, which the list holds.
        Ref::of(list.as_any()).items(true, |_, item| all.extend(self.variable(item)));
        all
    }

    /// What a variable of a frame that is running now refers to, as it was read from where `Layout` found it.
    pub(super) fn variable(&self, word: usize) -> Option<Ref<'_>> {
        // SAFETY: `Layout` found the place of variables by their values, and a frame's variables are set to null when
        // it begins, so the word is null or a reference that the frame holds. Frames that are being taken down aren't
        // listed among those that run.
        unsafe { self.object_at(word) }
    }

    /// What a descriptor or an iterator of a built-in type answered with: an object that its owner holds, too.
    pub(super) fn same(&self, answered: &Bound<'py, PyAny>) -> Ref<'_> {
        Ref { pointer: answered.as_ptr(), halt: PhantomData }
    }
}

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        if self.collecting {
            // SAFETY: as in `new`.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}

/// An object that is alive while the interpreter is held still.
#[derive(Clone, Copy)]
pub(super) struct Ref<'h> {
    pointer: *mut ffi::PyObject,
    halt: PhantomData<&'h ()>,
}

impl<'h> Ref<'h> {
    /// An object that somebody holds for as long as `'h`.
    pub(super) fn of(held: &'h Bound<'_, PyAny>) -> Self {
        Ref { pointer: held.as_ptr(), halt: PhantomData }
    }

    pub(super) fn address(self) -> usize {
        self.pointer as usize
    }

    /// The address of its type.
    pub(super) fn type_address(self) -> usize {
        // SAFETY: the object is alive (`'h`), and an object's header holds its type.
        (unsafe { ffi::Py_TYPE(self.pointer) }) as usize
    }

    /// How many references there are to it.
    pub(super) fn references(self) -> usize {
        // SAFETY: the object is alive, and its header begins with the count in each supported version. The low half
        // is the count in all of them: newer ones keep flags in the upper one. It is written under the GIL only.
        (unsafe { self.pointer.cast::<u32>().read() }) as usize
    }

    /// As an object of pyo3, which holds a reference until it is dropped.
    pub(super) fn bound<'py>(self, halt: &Halt<'py>) -> Bound<'py, PyAny> {
        // SAFETY: attached, as `halt` shows; the object is alive.
        unsafe { Bound::from_borrowed_ptr(halt.py, self.pointer) }
    }

    /// Calls `visit` for each object that this one refers to, as its type tells the collector.
    pub(super) fn refer_to<F: FnMut(Ref<'h>)>(self, traversal: &Traversal, mut visit: F) {
        if let Some(is_gc) = traversal.is_gc {
            // SAFETY: `is_gc` is the slot of this object's type, and the object is alive.
            if unsafe { is_gc(self.pointer) } == 0 {
                return;
            }
        }
        // SAFETY: `traverse` is the slot of this object's type. It may be called whenever the collector might run,
        // which is what a call from Python is. It calls `visit_one` with living objects and the argument given here,
        // which outlives the call.
        unsafe { (traversal.traverse)(self.pointer, visit_one::<F>, (&raw mut visit).cast()) };
    }

    /// The items of a list or tuple, subclasses included, read past whatever a subclass overrides.
    pub(super) fn items(self, is_list: bool, mut visit: impl FnMut(usize, usize)) {
        // SAFETY: the caller knows from the type table that this is a list or a tuple. Each index is below the size,
        // and nothing changes it meanwhile. The items are borrowed; one may be null while a tuple is being made.
        unsafe {
            let size = if is_list { ffi::PyList_Size(self.pointer) } else { ffi::PyTuple_Size(self.pointer) };
            for index in 0..size {
                let item = if is_list {
                    ffi::PyList_GetItem(self.pointer, index)
                } else {
                    ffi::PyTuple_GetItem(self.pointer, index)
                };
                visit(index as usize, item as usize);
            }
            if !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Clear();
            }
        }
    }

    /// The first items of a sequence, subclasses included, by the slots of its built-in base type.
    pub(super) fn sequence_items(self, base: usize, most: usize, mut visit: impl FnMut(usize)) {
        let kind = base as *mut ffi::PyTypeObject;
        // SAFETY: the caller knows from the type table that the object is of the built-in type `base` or derived from
        // it. The slots hold null or functions of the types that their numbers stand for; an item is a new reference,
        // given back while the sequence keeps its own.
        unsafe {
            let length = ffi::PyType_GetSlot(kind, ffi::Py_sq_length);
            let item = ffi::PyType_GetSlot(kind, ffi::Py_sq_item);
            let (Some(length), Some(item)) = (
                std::mem::transmute::<*mut c_void, Option<ffi::lenfunc>>(length),
                std::mem::transmute::<*mut c_void, Option<ffi::ssizeargfunc>>(item),
            ) else {
                return;
            };
            for index in 0..length(self.pointer).min(most as ffi::Py_ssize_t) {
                let item = item(self.pointer, index);
                if item.is_null() {
                    ffi::PyErr_Clear();
                    return;
                }
                ffi::Py_DECREF(item);
                visit(item as usize);
            }
        }
    }

    /// The entries of a dict, subclasses included: `visit` answers whether to go on.
    pub(super) fn entries(self, mut visit: impl FnMut(Ref<'h>, Ref<'h>) -> bool) {
        let mut position = 0;
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the caller knows from the type table that this is a dict. `PyDict_Next` hands out borrowed
        // references and calls nothing of the program, and nothing changes the dict while `visit` runs.
        unsafe {
            while ffi::PyDict_Next(self.pointer, &raw mut position, &raw mut key, &raw mut value) != 0 {
                let (key, value) =
                    (Ref { pointer: key, halt: PhantomData }, Ref { pointer: value, halt: PhantomData });
                if !visit(key, value) {
                    return;
                }
            }
        }
    }

    /// The number of entries of a dict, list, tuple or set.
    pub(super) fn len(self, class: super::types::Class) -> Option<usize> {
        use super::types::Class;
        // SAFETY: the class comes from the type table, so each function meets an object of its type; none of them
        // calls anything of the program.
        let size = unsafe {
            match class {
                Class::Dict => ffi::PyDict_Size(self.pointer),
                Class::List => ffi::PyList_Size(self.pointer),
                Class::Tuple => ffi::PyTuple_Size(self.pointer),
                Class::Set => ffi::PySet_Size(self.pointer),
                _ => return None,
            }
        };
        usize::try_from(size).ok()
    }

    /// The dict of its attributes, if its type gives it one, past whatever a class overrides.
    pub(super) fn attribute_dict<'py>(self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: attached; the object is alive. The result is a new reference, or null with an exception set, which
        // is cleared.
        unsafe {
            let dict = ffi::PyObject_GenericGetDict(self.pointer, std::ptr::null_mut());
            if dict.is_null() {
                ffi::PyErr_Clear();
            }
            Bound::from_owned_ptr_or_opt(py, dict)
        }
    }
}

unsafe extern "C" fn visit_one<'h, F: FnMut(Ref<'h>)>(
    object: *mut ffi::PyObject,
    argument: *mut c_void,
) -> c_int {
    if !object.is_null() {
        // SAFETY: `refer_to` passes a pointer to its `F`, and nothing else refers to that while the walk lasts. An
        // object handed to a visitor is alive.
        unsafe { (*argument.cast::<F>())(Ref { pointer: object, halt: PhantomData }) };
    }
    0
}

/// How an object of some type tells what it refers to.
#[derive(Clone, Copy)]
pub(super) struct Traversal {
    traverse: ffi::traverseproc,
    is_gc: Option<ffi::inquiry>,
}

impl Traversal {
    /// That of a type, if its objects can refer to others that the collector knows.
    pub(super) fn of(type_address: usize) -> Option<Self> {
        let kind = type_address as *mut ffi::PyTypeObject;
        // SAFETY: the address is that of a living object's type (`Ref::type_address`). A slot holds null or a function
        // of the type that its number stands for.
        unsafe {
            if ffi::PyType_GetFlags(kind) & ffi::Py_TPFLAGS_HAVE_GC == 0 {
                return None;
            }
            let traverse = ffi::PyType_GetSlot(kind, ffi::Py_tp_traverse);
            let is_gc = ffi::PyType_GetSlot(kind, ffi::Py_tp_is_gc);
            Some(Traversal {
                traverse: std::mem::transmute::<*mut c_void, Option<ffi::traverseproc>>(traverse)?,
                is_gc: std::mem::transmute::<*mut c_void, Option<ffi::inquiry>>(is_gc),
            })
        }
    }
}

/// Whether a type is derived from another, by its own list of bases.
pub(super) fn is_subtype(type_address: usize, base: usize) -> bool {
    // SAFETY: both are addresses of types, the first of a living object's, the second of one that the caller holds.
    unsafe { ffi::PyType_IsSubtype(type_address as *mut _, base as *mut _) != 0 }
}

/// The value of a built-in descriptor for an object, called directly: no `__getattribute__` of a class is asked.
pub(super) fn read<'py>(
    descriptor: &Bound<'py, PyAny>,
    object: &Bound<'py, PyAny>,
) -> Option<Bound<'py, PyAny>> {
    let py = descriptor.py();
    // SAFETY: attached. The slot belongs to the descriptor's own type; it takes a descriptor, an object and its type,
    // and answers with a new reference, or null with an exception, which is cleared.
    unsafe {
        let slot = ffi::PyType_GetSlot(ffi::Py_TYPE(descriptor.as_ptr()), ffi::Py_tp_descr_get);
        let read = std::mem::transmute::<*mut c_void, Option<ffi::descrgetfunc>>(slot)?;
        let value = read(descriptor.as_ptr(), object.as_ptr(), ffi::Py_TYPE(object.as_ptr()).cast());
        if value.is_null() {
            ffi::PyErr_Clear();
        }
        Bound::from_owned_ptr_or_opt(py, value)
    }
}

/// The exception that the calling thread is handling now.
pub(super) fn handled_exception(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    let (mut kind, mut value, mut traceback) =
        (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: attached; the three are set to new references or null, which are taken over.
    unsafe {
        ffi::PyErr_GetExcInfo(&raw mut kind, &raw mut value, &raw mut traceback);
        drop(Bound::from_owned_ptr_or_opt(py, kind));
        drop(Bound::from_owned_ptr_or_opt(py, traceback));
        Bound::from_owned_ptr_or_opt(py, value).filter(|value| !value.is_none())
    }
}

/// A frame's code object.
pub(super) fn code_of<'py>(frame: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: attached. The caller knows from the frame's type that it is one; the result is a new reference.
    unsafe { Bound::from_owned_ptr_or_opt(frame.py(), ffi::PyFrame_GetCode(frame.as_ptr().cast()).cast()) }
}

/// Cause and context of an exception.
pub(super) fn reasons_of(exception: Ref<'_>) -> (usize, usize) {
    // SAFETY: attached, as the reference shows; the type table says that it is an exception. Both results are new
    // references or null; they are given back at once, and the exception keeps holding them.
    unsafe {
        let (cause, context) =
            (ffi::PyException_GetCause(exception.pointer), ffi::PyException_GetContext(exception.pointer));
        ffi::Py_XDECREF(cause);
        ffi::Py_XDECREF(context);
        (cause as usize, context as usize)
    }
}

/// A type as an object.
pub(super) fn type_at<'py>(halt: &Halt<'py>, type_address: usize) -> Option<Bound<'py, PyAny>> {
    // SAFETY: attached; the address came from `Ref::type_address` of an object that is alive and so keeps its type.
    unsafe { Bound::from_borrowed_ptr_or_opt(halt.py, type_address as *mut ffi::PyObject) }
}
