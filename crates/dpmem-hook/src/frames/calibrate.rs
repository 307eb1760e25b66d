//! Finds the offsets of [`Layout`] by looking for known values.
//!
//! What is known comes from the public API: the chain of frames of this thread with their code objects, positions and
//! names. What is looked for are offsets at which the structs in memory hold just those values, in every frame of the
//! chain. Memory is read through the system ([`Peek`]), so a wrong guess reads nothing instead of crashing.

use std::ffi::CStr;

use super::layout::{Layout, Lines, Position, Strings};
use super::python::{Api, Object};
use crate::memory::Peek;

/// Addresses of `str` objects with known contents, one for each way a string is kept.
#[derive(Clone, Copy, Debug)]
pub struct Samples {
    /// `"calibrate"`: ASCII.
    pub ascii: usize,
    /// `"caf\u{e9}"`: one byte a character.
    pub latin: usize,
    /// `"\u{65e5}\u{672c}"`: two bytes.
    pub wide: usize,
    /// `"\u{1f600}!"`: four bytes.
    pub widest: usize,
    /// The `bytes` object of [`Samples::BYTES`].
    pub bytes: usize,
    /// The name that code of a module has.
    pub module: usize,
}

impl Samples {
    /// What the sample of `bytes` holds.
    pub const BYTES: &[u8] = b"a table of lines";
}

/// How far into a struct a field is looked for.
const THREAD_BYTES: usize = 768;
const FRAME_BYTES: usize = 128;
const CODE_BYTES: usize = 320;
/// Fewer frames than this prove nothing.
const FRAMES_MIN: usize = 3;
const FRAMES_MAX: usize = 24;
/// Frames that the interpreter puts in for itself, between two of the program's.
const INTERNAL_MAX: usize = 64;

/// A frame as the public API tells it.
struct Known {
    code: usize,
    position: usize,
    file: usize,
    name: usize,
    first_line: u32,
    lines: usize,
}

/// # Safety
/// The GIL is held, and `samples` are live strings.
pub(super) unsafe fn layout(api: &Api, samples: &Samples) -> Result<Layout, String> {
    // SAFETY: may be called at any time.
    if unsafe { (api.has_gil)() } == 0 {
        return Err("calibration needs the GIL".into());
    }
    let peek = Peek::open().ok_or("this system doesn't let a process read /proc/self/mem")?;
    let thread = api.this_thread();
    // SAFETY: the GIL is held, as was just checked.
    let known = unsafe { known_frames(api, thread) };
    if known.len() < FRAMES_MIN {
        return Err(format!(
            "expected at least {FRAMES_MIN} frames to calibrate with, found {}",
            known.len()
        ));
    }
    let strings = strings(&peek, samples).ok_or("the layout of `str` was not recognised")?;
    let code_type = code_field(&peek, &known, |_| api.code_type).ok_or("no type in code objects")?;
    let code_file = code_field(&peek, &known, |k| k.file).ok_or("no file name in code objects")?;
    let code_name = code_field(&peek, &known, |k| k.name).ok_or("no name in code objects")?;
    let code_first_line = first_line(&peek, &known).ok_or("no first line in code objects")?;
    let lines = lines(&peek, &known, samples).ok_or("no table of lines in code objects")?;
    let chain = chain(&peek, thread, &known).ok_or("the chain of frames was not found")?;
    let position = position(&peek, &chain.frames, &known).ok_or("no position in frames")?;
    Ok(Layout {
        thread_frame: chain.thread_frame,
        frame_code: chain.frame_code,
        frame_previous: chain.frame_previous,
        position,
        code_type: (code_type, api.code_type),
        code_file,
        code_name,
        code_first_line,
        lines,
        internal: chain.internal,
        strings,
    })
}

/// # Safety
/// The GIL is held and `thread` is the calling thread's state.
unsafe fn known_frames(api: &Api, thread: usize) -> Vec<Known> {
    let mut known = Vec::new();
    // SAFETY: the caller holds the GIL; every object is released once, after its last use here. The addresses kept stay
    // valid, because the frames on this thread's stack hold the code objects, and those their strings.
    unsafe {
        let mut frame = (api.frame_of)(thread as Object);
        while !frame.is_null() && known.len() < FRAMES_MAX {
            let code = (api.frame_code)(frame);
            let name = object(api, code, c"co_qualname").or_else(|| object(api, code, c"co_name"));
            known.push(Known {
                code: code as usize,
                position: integer(api, frame, c"f_lasti").unwrap_or(0) as usize,
                file: object(api, code, c"co_filename").unwrap_or(0),
                name: name.unwrap_or(0),
                first_line: integer(api, code, c"co_firstlineno").unwrap_or(0) as u32,
                lines: object(api, code, c"co_linetable").unwrap_or(0),
            });
            (api.release)(code);
            let back = (api.frame_back)(frame);
            (api.release)(frame);
            frame = back;
        }
        if !frame.is_null() {
            (api.release)(frame);
        }
    }
    known
}

/// The address of an attribute that its owner keeps alive.
///
/// # Safety
/// The GIL is held and `owner` is alive.
unsafe fn object(api: &Api, owner: Object, name: &CStr) -> Option<usize> {
    // SAFETY: see above.
    unsafe {
        let value = (api.attribute)(owner, name.as_ptr());
        if value.is_null() {
            (api.clear_error)();
            return None;
        }
        (api.release)(value);
        Some(value as usize)
    }
}

/// # Safety
/// The GIL is held and `owner` is alive.
unsafe fn integer(api: &Api, owner: Object, name: &CStr) -> Option<isize> {
    // SAFETY: see above.
    unsafe {
        let value = (api.attribute)(owner, name.as_ptr());
        if value.is_null() {
            (api.clear_error)();
            return None;
        }
        let integer = (api.to_integer)(value);
        (api.release)(value);
        Some(integer)
    }
}

fn code_field(peek: &Peek, known: &[Known], expected: impl Fn(&Known) -> usize) -> Option<usize> {
    (0..CODE_BYTES).step_by(8).find(|offset| {
        known.iter().all(|k| expected(k) != 0 && peek.word(k.code + offset) == Some(expected(k)))
    })
}

fn first_line(peek: &Peek, known: &[Known]) -> Option<usize> {
    let fits = |offset: &usize| known.iter().all(|k| peek.half(k.code + offset) == Some(k.first_line));
    (16..CODE_BYTES).step_by(4).find(fits)
}

/// Where code objects keep their table of lines, and where a `bytes` object keeps what.
fn lines(peek: &Peek, known: &[Known], samples: &Samples) -> Option<Lines> {
    let code = code_field(peek, known, |k| k.lines)?;
    let length =
        (8..48).step_by(8).find(|offset| peek.word(samples.bytes + offset) == Some(Samples::BYTES.len()))?;
    let mut found = [0; Samples::BYTES.len()];
    let data = (24..96)
        .step_by(8)
        .find(|offset| peek.bytes(samples.bytes + offset, &mut found) && found == Samples::BYTES)?;
    Some(Lines { code, length, data, module: samples.module })
}

struct Chain {
    thread_frame: (usize, Option<usize>),
    frame_code: usize,
    frame_previous: usize,
    /// The frames in memory, one for each known frame.
    frames: Vec<usize>,
    internal: Vec<usize>,
}

fn chain(peek: &Peek, thread: usize, known: &[Known]) -> Option<Chain> {
    let starts = (0..THREAD_BYTES).step_by(8).flat_map(|offset| {
        let direct = peek.word(thread + offset);
        let inner = [0, 8, 16].map(|inner| {
            let frame = direct.and_then(|holder| peek.word(holder.checked_add(inner)?));
            (frame, (offset, Some(inner)))
        });
        std::iter::once((direct, (offset, None))).chain(inner)
    });
    for (frame, thread_frame) in starts {
        let Some(frame) = frame.filter(|&frame| frame % 8 == 0 && frame > 4096) else { continue };
        for frame_code in (0..FRAME_BYTES).step_by(8) {
            if code_of(peek, frame, frame_code) != Some(known[0].code) {
                continue;
            }
            for frame_previous in (0..FRAME_BYTES).step_by(8).filter(|&offset| offset != frame_code) {
                if let Some((frames, internal)) = follow(peek, frame, frame_code, frame_previous, known) {
                    return Some(Chain { thread_frame, frame_code, frame_previous, frames, internal });
                }
            }
        }
    }
    None
}

fn code_of(peek: &Peek, frame: usize, offset: usize) -> Option<usize> {
    peek.word(frame.checked_add(offset)?).map(|code| code & !0b111)
}

/// Follows a chain; `None` unless all known frames are on it, in order.
fn follow(
    peek: &Peek,
    first: usize,
    frame_code: usize,
    frame_previous: usize,
    known: &[Known],
) -> Option<(Vec<usize>, Vec<usize>)> {
    let (mut frames, mut internal) = (Vec::new(), Vec::new());
    let mut frame = first;
    while frames.len() < known.len() {
        let code = code_of(peek, frame, frame_code)?;
        if code == known[frames.len()].code {
            frames.push(frame);
        } else {
            internal.push(code);
            if internal.len() > INTERNAL_MAX {
                return None;
            }
        }
        frame = peek.word(frame.checked_add(frame_previous)?)?;
    }
    internal.sort_unstable();
    internal.dedup();
    Some((frames, internal))
}

fn position(peek: &Peek, frames: &[usize], known: &[Known]) -> Option<Position> {
    let pairs = || frames.iter().zip(known);
    // The position must differ between frames, or any constant would do.
    let varied = known.iter().any(|k| k.position != known[0].position);
    if !varied {
        return None;
    }
    let pointer = (0..FRAME_BYTES).step_by(8).find_map(|offset| {
        let first = peek.word(frames[0] + offset)?;
        let code_start = first.checked_sub(known[0].code)?.checked_sub(known[0].position)?;
        let fits = |(&frame, k): (&usize, &Known)| {
            peek.word(frame + offset) == Some(k.code.wrapping_add(code_start).wrapping_add(k.position))
        };
        ((16..=CODE_BYTES).contains(&code_start) && pairs().all(fits))
            .then_some(Position::Pointer { offset, code_start })
    });
    pointer.or_else(|| {
        let index = (0..FRAME_BYTES).step_by(4).find(|&offset| {
            pairs().all(|(&frame, k)| peek.half(frame + offset).is_some_and(|i| i as usize * 2 == k.position))
        });
        index.map(|offset| Position::Index { offset })
    })
}

fn strings(peek: &Peek, samples: &Samples) -> Option<Strings> {
    const CONTENTS: [(&str, u32); 4] =
        [("calibrate", 1), ("caf\u{e9}", 1), ("\u{65e5}\u{672c}", 2), ("\u{1f600}!", 4)];
    let addresses = [samples.ascii, samples.latin, samples.wide, samples.widest];
    let all = || addresses.into_iter().zip(CONTENTS);
    let length = (8..48)
        .step_by(8)
        .find(|offset| all().all(|(at, (text, _))| peek.word(at + offset) == Some(text.chars().count())))?;
    let data = |index: usize| {
        let (text, width) = CONTENTS[index];
        let bytes = encoded(text, width);
        let mut found = vec![0; bytes.len()];
        (24..96).step_by(8).find(|offset| peek.bytes(addresses[index] + offset, &mut found) && found == bytes)
    };
    let (ascii_data, wide_data) = (data(0)?, data(1)?);
    if data(2)? != wide_data || data(3)? != wide_data {
        return None;
    }
    // The width of a character, then a flag that all four share, then the one for ASCII.
    let fits = |state: usize, shift: u32| {
        all().enumerate().all(|(index, (at, (_, width)))| {
            peek.half(at + state)
                .is_some_and(|s| s >> shift & 0b111 == width && s >> (shift + 4) & 1 == u32::from(index == 0))
        })
    };
    (16..48).step_by(4).find_map(|state| {
        let kind_shift = (0..=24).find(|&shift| fits(state, shift))?;
        Some(Strings { length, state, kind_shift, ascii_data, wide_data })
    })
}

fn encoded(text: &str, width: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for character in text.chars() {
        bytes.extend_from_slice(&u32::from(character).to_le_bytes()[..width as usize]);
    }
    bytes
}
