//! From arrays to the blocks they lie on. A `dpnp.ndarray`, its `usm_ndarray`, the memory object and the NumPy arrays
//! on it are one thing to a person: all of them are members of the block.

use pyo3::prelude::*;

use super::facts::Vocabulary;
use super::graph::{ByAddress, Graph};
use super::object::{Halt, Ref, read};
use super::types::{Class, Types};

/// Arrays of arrays of arrays that are followed down to a memory object.
const MAX_DEPTH: usize = 16;

/// What an array covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Which of the blocks.
    pub(super) block: usize,
    pub(super) address: usize,
    pub(super) bytes: u64,
    /// Whether it is a NumPy array.
    pub(super) numpy: bool,
    /// Whether it says itself what it covers, as arrays do.
    pub(super) is_array: bool,
}

pub(super) struct Arrays<'h, 'py> {
    halt: &'h Halt<'py>,
    vocabulary: &'h Vocabulary<'py>,
    /// (address, bytes), sorted.
    blocks: &'h [(usize, u64)],
}

impl<'h, 'py> Arrays<'h, 'py> {
    pub(super) fn new(
        halt: &'h Halt<'py>,
        vocabulary: &'h Vocabulary<'py>,
        blocks: &'h [(usize, u64)],
    ) -> Self {
        Arrays { halt, vocabulary, blocks }
    }

    /// The members among all nodes, by address.
    pub(super) fn members(&self, graph: &mut Graph<'h, 'py>) -> ByAddress<Member> {
        let mut members = ByAddress::default();
        for number in 0..graph.nodes.len() {
            let (object, class) = (graph.nodes[number].object, graph.nodes[number].class);
            if class.is_array()
                && let Some(member) = self.member(&mut graph.types, object, class, 0)
            {
                members.insert(object.address(), member);
            }
        }
        members
    }

    fn member(
        &self,
        types: &mut Types<'h, 'py>,
        object: Ref<'h>,
        class: Class,
        depth: usize,
    ) -> Option<Member> {
        if depth > MAX_DEPTH {
            return None;
        }
        let v = self.vocabulary;
        if class == Class::Memory {
            let address = self.number(&v.memory_pointer, object)? as usize;
            let block = self.block_at(address)?;
            let bytes = self.number(&v.memory_bytes, object)?;
            return Some(Member { block, address, bytes, numpy: false, is_array: false });
        }
        let (below, below_class) = self.below(types, object, class)?;
        let under = self.member(types, below, below_class, depth + 1)?;
        Some(match class {
            Class::Usm => {
                let address = self.number(&v.usm_pointer, object).map_or(under.address, |at| at as usize);
                let bytes = self.number(&v.usm_bytes, object).unwrap_or(under.bytes);
                Member { address, bytes, is_array: true, ..under }
            }
            Class::Ndarray => {
                let bytes = self.number(&v.ndarray_bytes, object).unwrap_or(under.bytes);
                Member { bytes, numpy: true, is_array: true, ..under }
            }
            _ => under,
        })
    }

    /// What an array keeps its data in: the next object on the way to the memory object.
    fn below(&self, types: &mut Types<'h, 'py>, object: Ref<'h>, class: Class) -> Option<(Ref<'h>, Class)> {
        if class == Class::Ndarray {
            let base = read(self.vocabulary.ndarray_base.as_ref()?, &object.bound(self.halt))?;
            let base = self.halt.same(&base);
            let class = types.of(base).class;
            return class.is_array().then_some((base, class));
        }
        let mut found = None;
        object.refer_to(&types.of(object).traversal?, |child| {
            let next = types.of(child).class;
            let fits = match class {
                Class::Dpnp => next == Class::Usm,
                Class::Usm => next == Class::Memory,
                _ => next.is_array(),
            };
            if fits && found.is_none() {
                found = Some((child, next));
            }
        });
        found
    }

    fn number(&self, descriptor: &Option<Bound<'py, PyAny>>, object: Ref<'h>) -> Option<u64> {
        read(descriptor.as_ref()?, &object.bound(self.halt))?.extract().ok()
    }

    fn block_at(&self, address: usize) -> Option<usize> {
        let after = self.blocks.partition_point(|(start, _)| *start <= address);
        let at = after.checked_sub(1)?;
        let (start, bytes) = self.blocks[at];
        (address - start < (bytes as usize).max(1)).then_some(at)
    }
}
