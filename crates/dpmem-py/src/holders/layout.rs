//! Where the interpreter keeps variables: found by looking for known values in known objects, never assumed.
//!
//! Locals of running frames can't be had through the public API without side effects before CPython 3.13: it would
//! change what the program's own `locals()` answered and leave a dict of references on the frame. So they are read as
//! they lie. Words are read through `/proc/self/mem`: a wrong guess reads nothing instead of crashing. What isn't found
//! has no names in a path; nothing else depends on it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use pyo3::prelude::*;

use super::facts::Samples;
use super::object::Ref;

/// Newer interpreters keep flags in the low bits of a reference on the stack.
const TAGS: usize = 0b111;
const WORD: usize = 8;
/// Words of an object, and of a frame behind a pointer, that are looked at.
const OBJECT_WORDS: usize = 48;
const BEHIND_WORDS: usize = 24;

/// Places of fields, in bytes from the start of their object.
pub(super) struct Layout {
    memory: Option<File>,
    pub(super) function: Option<FunctionLayout>,
    frame: Option<Locals>,
    generator: Option<Locals>,
    generator_code: Option<usize>,
}

pub(super) struct FunctionLayout {
    code: usize,
    defaults: usize,
    keyword_defaults: usize,
    closure: usize,
}

/// What a function object refers to, by address; 0 for nothing.
pub(super) struct FunctionParts {
    pub(super) code: usize,
    pub(super) defaults: usize,
    pub(super) keyword_defaults: usize,
    pub(super) closure: usize,
}

#[derive(Clone, Copy)]
enum Locals {
    /// In the object itself.
    Inside(usize),
    /// Behind a pointer in the object.
    Behind(usize, usize),
}

impl Layout {
    pub(super) fn learn(samples: &Samples<'_>) -> Self {
        let memory = File::open("/proc/self/mem").ok();
        let mut layout =
            Layout { memory, function: None, frame: None, generator: None, generator_code: None };
        let wanted: Vec<usize> = samples.locals.iter().map(address).collect();
        let function = layout.words(address(&samples.function), OBJECT_WORDS);
        let place = |value: &Bound<'_, PyAny>| only(&function, address(value));
        layout.function = (|| {
            Some(FunctionLayout {
                code: place(&samples.code)?,
                defaults: place(&samples.defaults)?,
                keyword_defaults: place(&samples.keyword_defaults)?,
                closure: place(&samples.closure)?,
            })
        })();
        layout.frame = layout.locals_of(address(&samples.frame), &wanted);
        layout.generator = layout.locals_of(address(&samples.generator), &wanted);
        let generator = layout.words(address(&samples.generator), OBJECT_WORDS);
        // It may stand there twice, in the generator and in its frame.
        let code = address(&samples.generator_code);
        layout.generator_code = generator.iter().position(|word| *word == code).map(|index| index * WORD);
        layout
    }

    fn locals_of(&self, object: usize, wanted: &[usize]) -> Option<Locals> {
        let words = self.words(object, OBJECT_WORDS);
        if let Some(at) = run(&words, wanted) {
            return Some(Locals::Inside(at));
        }
        let pointers = words.iter().enumerate().filter(|(_, word)| **word > 4096);
        let mut found = pointers.filter_map(|(index, word)| {
            let behind = self.words(*word, BEHIND_WORDS + wanted.len());
            run(&behind, wanted).map(|at| Locals::Behind(index * WORD, at))
        });
        found.next()
    }

    /// Words from an address on, without tags; fewer than asked for where the memory ends.
    fn words(&self, address: usize, count: usize) -> Vec<usize> {
        let mut bytes = vec![0u8; count * WORD];
        let memory = self.memory.as_ref();
        let read = memory.and_then(|memory| memory.read_at(&mut bytes, address as u64).ok()).unwrap_or(0);
        let word = |chunk: &[u8]| chunk.try_into().map_or(0, usize::from_ne_bytes) & !TAGS;
        bytes[..read].chunks_exact(WORD).map(word).collect()
    }

    /// The first `count` variables of a frame object, 0 where there is no value. What lies behind them on the
    /// frame's stack may be stale.
    pub(super) fn frame_variables(&self, frame: Ref<'_>, count: usize) -> Vec<usize> {
        self.variables(self.frame, frame, count)
    }

    /// The first `count` variables of a suspended generator.
    pub(super) fn generator_variables(&self, generator: Ref<'_>, count: usize) -> Vec<usize> {
        self.variables(self.generator, generator, count)
    }

    fn variables(&self, place: Option<Locals>, object: Ref<'_>, count: usize) -> Vec<usize> {
        let start = match place {
            None => return Vec::new(),
            Some(Locals::Inside(at)) => object.address() + at,
            Some(Locals::Behind(pointer, at)) => match self.words(object.address() + pointer, 1)[..] {
                [behind] if behind != 0 => behind + at,
                _ => return Vec::new(),
            },
        };
        self.words(start, count)
    }

    /// The address of a generator's code object.
    pub(super) fn generator_code(&self, generator: Ref<'_>) -> Option<usize> {
        self.words(generator.address() + self.generator_code?, 1).first().copied().filter(|code| *code != 0)
    }

    /// What a function refers to.
    pub(super) fn function_parts(&self, function: Ref<'_>) -> Option<FunctionParts> {
        let layout = self.function.as_ref()?;
        let word = |at: usize| self.words(function.address() + at, 1).first().copied();
        Some(FunctionParts {
            code: word(layout.code)?,
            defaults: word(layout.defaults)?,
            keyword_defaults: word(layout.keyword_defaults)?,
            closure: word(layout.closure)?,
        })
    }
}

fn address(object: &Bound<'_, PyAny>) -> usize {
    object.as_ptr() as usize
}

/// Where a value stands, if it stands in one place only.
fn only(words: &[usize], value: usize) -> Option<usize> {
    let mut places = words.iter().enumerate().filter(|(_, word)| **word == value);
    let first = places.next()?;
    places.next().is_none().then_some(first.0 * WORD)
}

/// Where values stand one after the other.
fn run(words: &[usize], wanted: &[usize]) -> Option<usize> {
    words.windows(wanted.len()).position(|window| window == wanted).map(|index| index * WORD)
}
