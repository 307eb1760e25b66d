//! Where the running interpreter keeps what, and reading it from there.

use dpmem_core::RawFrame;

/// Bits that newer interpreters keep in the low end of a pointer to an object.
const TAG_BITS: usize = 0b111;
/// Position in a code object beyond which a frame is no ordinary one.
const POSITION_MAX: usize = 1 << 26;

/// How a frame says where it is in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// A pointer into the code object, whose instructions start at `code_start`.
    Pointer { offset: usize, code_start: usize },
    /// A 32-bit count of instructions of two bytes.
    Index { offset: usize },
}

/// Offsets in bytes into the interpreter's structs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// In the thread state: the current frame, or a struct that holds it at `.1`.
    pub(super) thread_frame: (usize, Option<usize>),
    pub(super) frame_code: usize,
    pub(super) frame_previous: usize,
    pub(super) position: Position,
    /// In a code object: its type, and the value that makes it a code object.
    pub(super) code_type: (usize, usize),
    pub(super) code_file: usize,
    pub(super) code_name: usize,
    pub(super) code_first_line: usize,
    pub(super) lines: Lines,
    /// Code objects of frames that the interpreter puts in for itself.
    pub(super) internal: Vec<usize>,
    pub(super) strings: Strings,
}

/// Where a code object keeps its table of lines, and the `bytes` that it is keeps what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) code: usize,
    pub(super) length: usize,
    pub(super) data: usize,
    /// The name that code of a module has.
    pub(super) module: usize,
}

/// Where a `str` keeps what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strings {
    pub(super) length: usize,
    /// Offset of the word of flags, the bit at which the width of a character starts, and the bit for ASCII.
    pub(super) state: usize,
    pub(super) kind_shift: u32,
    pub(super) ascii_data: usize,
    pub(super) wide_data: usize,
}

/// # Safety of all readers
/// The addresses they are given are live objects of the interpreter that the offsets were calibrated for.
impl Layout {
    #[inline]
    pub(super) unsafe fn first_frame(&self, thread: usize) -> usize {
        // SAFETY: see above.
        let first = unsafe { word(thread + self.thread_frame.0) };
        match self.thread_frame.1 {
            // SAFETY: the interpreter keeps this struct as long as the thread state.
            Some(offset) if first != 0 => unsafe { word(first + offset) },
            _ => first,
        }
    }

    #[inline]
    pub(super) unsafe fn previous(&self, frame: usize) -> usize {
        // SAFETY: see above.
        unsafe { word(frame + self.frame_previous) }
    }

    /// What a frame runs; `None` if it runs no Python code.
    #[inline]
    pub(super) unsafe fn raw_frame(&self, frame: usize) -> Option<RawFrame> {
        // SAFETY: see above.
        let code = unsafe { word(frame + self.frame_code) } & !TAG_BITS;
        // SAFETY: what a frame runs is an object, and every object has its type at this offset.
        if code == 0 || unsafe { word(code + self.code_type.0) } != self.code_type.1 {
            return None;
        }
        if self.internal.contains(&code) {
            return None;
        }
        let instruction = match self.position {
            Position::Pointer { offset, code_start } => {
                // SAFETY: see above.
                unsafe { word(frame + offset) }.wrapping_sub(code + code_start)
            }
            // SAFETY: see above.
            Position::Index { offset } => (unsafe { half(frame + offset) } as usize).wrapping_mul(2),
        };
        // A frame that has not begun stands before its first instruction; it counts as being at it.
        let instruction = if instruction > POSITION_MAX { 0 } else { instruction as u32 };
        // SAFETY: `code` is a code object.
        let (name, first_line) = unsafe { (word(code + self.code_name), half(code + self.code_first_line)) };
        // SAFETY: as above.
        let mut file_mark = unsafe { self.mark(word(code + self.code_file)) };
        if name == self.lines.module {
            // A notebook compiles each statement of a cell by itself, and as soon as one has ended, the next may take
            // its place in memory: with the same name, file and first line.
            // SAFETY: as above.
            file_mark ^= unsafe { self.mark_of_lines(word(code + self.lines.code)) }.rotate_left(29);
        }
        Some(RawFrame { code, name, file_mark, instruction, first_line })
    }

    /// A mark of a file name: of its address, its length and its last characters, so that it costs three reads.
    #[inline]
    unsafe fn mark(&self, string: usize) -> u64 {
        // SAFETY: a `str` holds at least one byte a character from the place on where an ASCII one holds its data, and
        // objects are padded to 16 bytes, so the eight bytes read lie in its memory.
        unsafe {
            let length = word(string + self.strings.length);
            let tail = string + self.strings.ascii_data + length.saturating_sub(8);
            let tail = std::ptr::read_unaligned(tail as *const u64);
            // What lies behind a name of fewer than eight characters is no part of it.
            let tail = if length < 8 { tail & ((1 << (8 * length)) - 1) } else { tail };
            (string as u64 ^ (length as u64) << 48).rotate_left(17) ^ tail.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        }
    }

    /// A mark of a table of lines: of its address, its length and its beginning, where the first line is.
    #[inline]
    unsafe fn mark_of_lines(&self, table: usize) -> u64 {
        // SAFETY: a `bytes` holds its data and a NUL from this place on, and objects are padded to 16 bytes, of which the
        // header takes all; so eight bytes can be read of any, and sixteen of those that have as many.
        unsafe {
            let length = word(table + self.lines.length);
            let data = (table + self.lines.data) as *const u64;
            let first = std::ptr::read_unaligned(data);
            let first = if length < 8 { first & ((1 << (8 * length)) - 1) } else { first };
            let second = if length < 16 { 0 } else { std::ptr::read_unaligned(data.add(1)) };
            (table as u64 ^ (length as u64) << 48).rotate_left(17)
                ^ first.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                ^ second.wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
        }
    }

    /// The file of a code object.
    pub(super) unsafe fn file(&self, code: usize) -> String {
        // SAFETY: see above.
        unsafe { self.text(word(code + self.code_file)) }
    }

    /// The text of a `str`.
    pub(super) unsafe fn text(&self, string: usize) -> String {
        let Strings { length, state, kind_shift, ascii_data, wide_data } = self.strings;
        if string == 0 {
            return String::new();
        }
        // SAFETY: see above.
        let (length, state) = unsafe { (word(string + length), half(string + state)) };
        let width = (state >> kind_shift & 0b111) as usize;
        // The flags for "compact" and "ASCII" follow the width.
        let is_ascii = state >> (kind_shift + 4) & 1 == 1;
        let data = string + if is_ascii { ascii_data } else { wide_data };
        // SAFETY: a `str` holds `length` characters of that width at that place.
        unsafe {
            match width {
                1 if is_ascii => String::from_utf8_lossy(items::<u8>(data, length)).into_owned(),
                1 => items::<u8>(data, length).iter().map(|&c| char::from(c)).collect(),
                2 => scalars(items::<u16>(data, length).iter().map(|&c| u32::from(c))),
                4 => scalars(items::<u32>(data, length).iter().copied()),
                _ => String::new(),
            }
        }
    }
}

fn scalars(characters: impl Iterator<Item = u32>) -> String {
    characters.map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[inline]
unsafe fn word(address: usize) -> usize {
    // SAFETY: the callers above read aligned words of live objects. Other threads may write to neighbours of a field,
    // never to a field of this thread's own frames.
    unsafe { std::ptr::read_volatile(address as *const usize) }
}

#[inline]
unsafe fn half(address: usize) -> u32 {
    // SAFETY: as for `word`.
    unsafe { std::ptr::read_volatile(address as *const u32) }
}

unsafe fn items<'a, T>(address: usize, len: usize) -> &'a [T] {
    // SAFETY: the caller knows `len` items at an address that is aligned for them, as a `str` keeps them.
    unsafe { std::slice::from_raw_parts(address as *const T, len) }
}
