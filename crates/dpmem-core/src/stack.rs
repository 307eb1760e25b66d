//! Python stacks: what a frame is, and the table in which each distinct stack is kept once.
//!
//! A frame is first known by addresses ([`RawFrame`]); its strings are copied once, when the stack is first seen. Two
//! raw stacks are one only if every address and position in them agrees, so a code object that takes the place of a
//! freed one is told apart by its name, first line and file name, a module's by its lines, too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::append::AppendTable;
use crate::sync::lock_std as lock;

/// A frame as the interpreter holds it: addresses of the code object and its strings, and the position in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RawFrame {
    /// Address of the code object.
    pub code: usize,
    /// Address of its function name.
    pub name: usize,
    /// A mark of its file name, and of the lines of code that is a module's: others have others, but for rare chance.
    pub file_mark: u64,
    /// Position in the code, as the interpreter counts it.
    pub instruction: u32,
    /// First line of the code object.
    pub first_line: u32,
}

/// A frame as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// File name as the code object states it.
    pub file: Arc<str>,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Qualified name where the interpreter has one.
    pub function: Arc<str>,
    /// Whether this is dpnp, dpctl, the standard library, site-packages or dpmem itself.
    pub library: bool,
}

/// Why an event has no Python stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Origin {
    /// It happened on a thread that runs no Python.
    RuntimeThread = 0,
    /// The block existed before recording started.
    BeforeStart = 1,
    /// Stacks are switched off or could not be read.
    NotRecorded = 2,
    /// The table was full; the stack is one of the later ones.
    OtherStacks = 3,
}

impl Origin {
    const ALL: [Origin; 4] =
        [Origin::RuntimeThread, Origin::BeforeStart, Origin::NotRecorded, Origin::OtherStacks];

    /// The words for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            Origin::RuntimeThread => "runtime thread",
            Origin::BeforeStart => "before start",
            Origin::NotRecorded => "no stacks recorded",
            Origin::OtherStacks => "other stacks",
        }
    }
}

/// A stack: one of the [`Origin`]s, or an entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

impl StackId {
    /// The place of a reason for having no stack.
    pub fn origin(origin: Origin) -> StackId {
        StackId(origin as u32)
    }

    /// The reason, if this is no stack at all.
    pub fn as_origin(self) -> Option<Origin> {
        Origin::ALL.get(self.0 as usize).copied()
    }

    fn from_index(index: usize) -> StackId {
        StackId((index + Origin::ALL.len()) as u32)
    }

    fn index(self) -> Option<usize> {
        (self.0 as usize).checked_sub(Origin::ALL.len())
    }
}

/// A distinct stack, innermost frame first.
pub struct Stack {
    raw: Box<[RawFrame]>,
    /// Its frames, innermost first.
    pub frames: Arc<[Frame]>,
}

const SHARDS: usize = 16;

/// Every distinct stack, once.
pub(crate) struct StackTable {
    stacks: AppendTable<Stack>,
    by_hash: [Mutex<HashMap<u64, Vec<StackId>, FxBuildHasher>>; SHARDS],
}

impl StackTable {
    pub(crate) fn new(capacity: usize) -> Self {
        StackTable {
            stacks: AppendTable::new(capacity),
            by_hash: std::array::from_fn(|_| Mutex::new(FxHashMap::default())),
        }
    }

    /// The hash under which [`StackTable::intern`] files a stack: of the code and the position of each frame, which is
    /// nearly always enough; whoever finds a stack by it compares the whole.
    pub(crate) fn hash(raw: &[RawFrame]) -> u64 {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        let mix = |hash: u64, place: u64| (hash.rotate_left(23) ^ place).wrapping_mul(ODD);
        // Four chains, because each step of one has to wait for the step before.
        let mut chains = [ODD, ODD ^ 1, ODD ^ 2, ODD ^ 3];
        for four in raw.chunks(chains.len()) {
            for (chain, frame) in chains.iter_mut().zip(four) {
                *chain = mix(*chain, frame.code as u64 ^ u64::from(frame.instruction) << 40);
            }
        }
        let hash = chains.into_iter().fold(raw.len() as u64, mix);
        hash ^ hash >> 32
    }

    /// The id of `raw`. `resolve` runs only for a stack that has not been seen, and with no lock held.
    pub(crate) fn intern(
        &self,
        raw: &[RawFrame],
        hash: u64,
        resolve: impl Fn(&RawFrame) -> Frame,
    ) -> StackId {
        let shard = &self.by_hash[(hash >> 32) as usize % SHARDS];
        let known = |ids: &[StackId]| ids.iter().copied().find(|&id| self.is(id, raw));
        if let Some(id) = lock(shard).get(&hash).and_then(|ids| known(ids)) {
            return id;
        }
        if self.stacks.is_full() {
            // Resolving costs more than all the rest, and would be for nothing, again and again.
            return StackId::origin(Origin::OtherStacks);
        }
        let stack = Stack { raw: raw.into(), frames: raw.iter().map(resolve).collect() };
        let mut shard = lock(shard);
        let ids = shard.entry(hash).or_default();
        if let Some(id) = known(ids) {
            return id;
        }
        match self.stacks.push(stack) {
            Ok(index) => {
                let id = StackId::from_index(index);
                ids.push(id);
                id
            }
            Err(_) => StackId::origin(Origin::OtherStacks),
        }
    }

    /// Whether `id` is exactly this raw stack.
    pub(crate) fn is(&self, id: StackId, raw: &[RawFrame]) -> bool {
        self.get(id).is_some_and(|stack| *stack.raw == *raw)
    }

    pub(crate) fn get(&self, id: StackId) -> Option<&Stack> {
        self.stacks.get(id.index()?)
    }

    /// The innermost frame that is no library's.
    pub(crate) fn user_frame(&self, id: StackId) -> Option<RawFrame> {
        let stack = self.get(id)?;
        let at = stack.frames.iter().position(|frame| !frame.library)?;
        stack.raw.get(at).copied()
    }

    /// The frames of a stack; none for an origin.
    pub(crate) fn frames(&self, id: StackId) -> Arc<[Frame]> {
        self.get(id).map_or_else(|| Arc::from([]), |stack| stack.frames.clone())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn frame(raw: &RawFrame) -> Frame {
        Frame { file: "a.py".into(), line: raw.instruction, function: "f".into(), library: false }
    }

    fn raw(code: usize, instruction: u32) -> RawFrame {
        RawFrame { code, instruction, ..RawFrame::default() }
    }

    #[test]
    fn a_stack_is_resolved_once() {
        let table = StackTable::new(10);
        let stack = [raw(1, 2), raw(3, 4)];
        let hash = StackTable::hash(&stack);
        let first = table.intern(&stack, hash, frame);
        let again = table.intern(&stack, hash, |_| panic!("resolved twice"));
        assert_eq!(first, again);
        assert_eq!(table.frames(first).iter().map(|f| f.line).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn equal_hashes_do_not_make_equal_stacks() {
        let table = StackTable::new(10);
        let one = table.intern(&[raw(1, 1)], 7, frame);
        let other = table.intern(&[raw(2, 1)], 7, frame);
        assert_ne!(one, other);
    }

    #[test]
    fn a_full_table_has_a_place_for_the_rest() {
        let table = StackTable::new(1);
        table.intern(&[raw(1, 1)], 1, frame);
        let rest = table.intern(&[raw(2, 1)], 2, |_| panic!("resolved for nothing"));
        assert_eq!(rest.as_origin(), Some(Origin::OtherStacks));
        assert!(table.frames(rest).is_empty());
    }
}
