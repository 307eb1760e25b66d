//! What C callers hand over: arrays, texts and places for answers. All of it rests on the caller's promise (see the
//! crate's documentation), and nothing here is kept beyond the call.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

/// An array.
pub fn given<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if start.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise: so many elements, which stay as they are during the call.
    unsafe { std::slice::from_raw_parts(start, count) }
}

/// A text; a null pointer is an empty one.
pub fn text<'a>(start: *const c_char) -> Cow<'a, str> {
    if start.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: the caller's promise: a C string, which stays as it is during the call.
    unsafe { CStr::from_ptr(start) }.to_string_lossy()
}

/// Fills as much of an array as there is room for.
pub fn fill<T: Copy>(into: *mut T, room: usize, values: &[T]) {
    if into.is_null() {
        return;
    }
    let count = room.min(values.len());
    // SAFETY: the caller's promise: `into` has room for `room` elements; what is written there comes from our own memory.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), into, count) };
}

/// Writes a text into a field of fixed size, ended by a zero.
pub fn write_text(into: &mut [c_char], value: &str) {
    into.fill(0);
    let room = into.len().saturating_sub(1);
    for (place, byte) in into.iter_mut().zip(value.bytes().take(room)) {
        *place = byte as c_char;
    }
}
