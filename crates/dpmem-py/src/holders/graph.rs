//! The objects that can be reached, each with the one it was reached from, and every edge that ends at an array.
//!
//! Roots are taken group by group, the ones a person would rather name first, and each group is followed to its end
//! before the next. Breadth first, so an object's chain of parents is the shortest within its group. Modules are never
//! walked through: each is a root of its own, so no chain leads from one module into another.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Instant;

use pyo3::prelude::*;

use super::facts::Vocabulary;
use super::object::{Halt, Ref, read};
use super::roots::Root;
use super::types::{Class, Types};

/// No node.
pub(super) const NONE: u32 = u32::MAX;
/// Its turn comes later, as a root.
const RESERVED: u32 = u32::MAX - 1;
/// How often the clock is asked, in nodes; a power of two.
const CLOCK_EVERY: usize = 1024;
/// Items of a NumPy array of objects that are looked at.
pub(super) const MAX_ITEMS: usize = 100_000;

/// Why an object is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It hangs on a root, by its number.
    Root(u32),
    /// Something that is no Python object holds it, or one that it hangs on.
    Outside,
    /// Nothing holds it but a reference cycle.
    Cycle,
}

pub(super) struct Node<'h> {
    pub(super) object: Ref<'h>,
    pub(super) class: Class,
    pub(super) parent: u32,
    pub(super) reach: Reach,
}

/// Addresses are multiples of 16 and well spread above that.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ (address as u64 >> 4)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

pub(super) type ByAddress<V> = HashMap<usize, V, BuildHasherDefault<AddressHasher>>;

pub(super) struct Graph<'h, 'py> {
    halt: &'h Halt<'py>,
    vocabulary: &'h Vocabulary<'py>,
    pub(super) types: Types<'h, 'py>,
    pub(super) nodes: Vec<Node<'h>>,
    index: ByAddress<u32>,
    /// (from, to), where `to` is an array.
    pub(super) edges: Vec<(u32, u32)>,
    deadline: Instant,
    /// Whether the time was up before everything had been looked at.
    pub(super) late: bool,
}

impl<'h, 'py> Graph<'h, 'py> {
    pub(super) fn new(
        halt: &'h Halt<'py>,
        vocabulary: &'h Vocabulary<'py>,
        types: Types<'h, 'py>,
        deadline: Instant,
    ) -> Self {
        let (nodes, edges) = (Vec::new(), Vec::new());
        Graph { halt, vocabulary, types, nodes, index: HashMap::default(), edges, deadline, late: false }
    }

    pub(super) fn node(&self, number: u32) -> &Node<'h> {
        &self.nodes[number as usize]
    }

    /// The node of an object, if it was met.
    pub(super) fn find(&self, address: usize) -> Option<u32> {
        self.index.get(&address).copied().filter(|number| *number < RESERVED)
    }

    /// Keeps objects out of the walk.
    pub(super) fn hide(&mut self, hidden: &[Ref<'h>]) {
        self.index.extend(hidden.iter().map(|object| (object.address(), RESERVED)));
    }

    /// Follows all roots, `roots` being in the order of their groups.
    pub(super) fn follow(&mut self, roots: &[Root<'h>]) {
        for root in roots {
            for object in root.objects() {
                self.index.insert(object.address(), RESERVED);
            }
        }
        let mut cursor = 0;
        for (number, root) in roots.iter().enumerate() {
            self.begin(number as u32, root);
            let group_ends = roots.get(number + 1).is_none_or(|next| next.group != root.group);
            if group_ends {
                self.run(&mut cursor);
            }
        }
    }

    fn begin(&mut self, number: u32, root: &Root<'h>) {
        let mut parent = NONE;
        for object in root.objects() {
            // One object may be a root twice, as a module under two names is.
            if self.index.get(&object.address()).is_some_and(|known| *known != RESERVED) {
                continue;
            }
            let class = self.types.of(object).class;
            let node = self.enter(object, class, parent, Reach::Root(number));
            parent = node;
            for variable in &root.variables {
                self.meet(node, *variable);
            }
        }
    }

    fn enter(&mut self, object: Ref<'h>, class: Class, parent: u32, reach: Reach) -> u32 {
        let number = self.nodes.len() as u32;
        self.index.insert(object.address(), number);
        self.nodes.push(Node { object, class, parent, reach });
        number
    }

    fn run(&mut self, cursor: &mut usize) {
        while *cursor < self.nodes.len() && !self.is_late(*cursor) {
            let number = *cursor as u32;
            self.expand(number, |graph, child| graph.meet(number, child));
            *cursor += 1;
        }
    }

    fn is_late(&mut self, count: usize) -> bool {
        if count & (CLOCK_EVERY - 1) == 0 && Instant::now() >= self.deadline {
            self.late = true;
        }
        self.late
    }

    /// Notes that node `from` refers to `child`.
    fn meet(&mut self, from: u32, child: Ref<'h>) {
        let facts = self.types.of(child);
        if facts.class == Class::Leaf {
            return;
        }
        let number = match self.index.get(&child.address()) {
            Some(&RESERVED) => return,
            Some(&known) => known,
            None => {
                let reach = self.node(from).reach;
                self.enter(child, facts.class, from, reach)
            }
        };
        if facts.class.is_array() {
            self.edges.push((from, number));
        }
    }

    /// Calls `met` for everything that a node refers to.
    fn expand(&mut self, number: u32, mut met: impl FnMut(&mut Self, Ref<'h>)) {
        let object = self.node(number).object;
        let facts = self.types.of(object);
        if let Some(traversal) = facts.traversal {
            object.refer_to(&traversal, |child| met(self, child));
        }
        if facts.class == Class::Ndarray {
            for child in self.referents_of_ndarray(object) {
                met(self, child);
            }
        }
    }

    /// NumPy's arrays tell the collector nothing: what one is a view of, or its items if they are objects.
    fn referents_of_ndarray(&self, array: Ref<'h>) -> Vec<Ref<'h>> {
        let v = self.vocabulary;
        let array = array.bound(self.halt);
        let ask =
            |descriptor: &Option<_>| descriptor.as_ref().and_then(|descriptor| read(descriptor, &array));
        let mut found = Vec::new();
        if let Some(base) = ask(&v.ndarray_base).filter(|base| !base.is_none()) {
            found.push(self.held_elsewhere(&base));
        }
        let of_objects = ask(&v.ndarray_dtype).zip(v.object_dtype.as_ref()).is_some_and(|(a, b)| a.is(b));
        if of_objects && let Some(items) = ask(&v.ndarray_flat).and_then(|flat| flat.try_iter().ok()) {
            found.extend(items.take(MAX_ITEMS).map_while(Result::ok).map(|item| self.held_elsewhere(&item)));
        }
        found
    }

    fn held_elsewhere(&self, object: &Bound<'py, PyAny>) -> Ref<'h> {
        self.halt.same(object)
    }

    /// Looks at the objects that no root leads to, as the collector does: those with more references than other such
    /// objects account for are held from outside, and so is what hangs on them; the rest is a cycle.
    pub(super) fn look_at_unreached(&mut self, universe: &[Ref<'h>]) {
        if self.late {
            return;
        }
        let first = self.nodes.len();
        for object in universe {
            if !self.index.contains_key(&object.address()) {
                let class = self.types.of(*object).class;
                self.enter(*object, class, NONE, Reach::Cycle);
            }
        }
        let listed = self.nodes.len();
        let mut inside = vec![0usize; listed - first];
        let mut cursor = first;
        while cursor < self.nodes.len() && !self.is_late(cursor) {
            let from = cursor as u32;
            self.expand(from, |graph, child| graph.count(from, child, first, &mut inside));
            cursor += 1;
        }
        if self.late {
            return;
        }
        let mut outside = Vec::new();
        for number in first..self.nodes.len() {
            // Those from the list have one reference from it.
            let accounted = inside.get(number - first).copied().unwrap_or(0) + usize::from(number < listed);
            if self.nodes[number].object.references() > accounted {
                self.nodes[number].parent = NONE;
                self.nodes[number].reach = Reach::Outside;
                outside.push(number as u32);
            }
        }
        self.spread(outside, first);
    }

    fn count(&mut self, from: u32, child: Ref<'h>, first: usize, inside: &mut Vec<usize>) {
        let class = self.types.of(child).class;
        if class == Class::Leaf {
            return;
        }
        let number = match self.index.get(&child.address()) {
            Some(&known) => known,
            None => self.enter(child, class, NONE, Reach::Cycle),
        };
        if number >= RESERVED || (number as usize) < first {
            return;
        }
        let place = number as usize - first;
        if inside.len() <= place {
            inside.resize(place + 1, 0);
        }
        inside[place] += 1;
        if self.node(number).parent == NONE && number != from {
            self.nodes[number as usize].parent = from;
        }
        if class.is_array() {
            self.edges.push((from, number));
        }
    }

    /// Marks what hangs on objects that are held from outside.
    fn spread(&mut self, mut queue: Vec<u32>, first: usize) {
        let mut cursor = 0;
        while cursor < queue.len() {
            let from = queue[cursor];
            cursor += 1;
            self.expand(from, |graph, child| {
                if let Some(number) = graph.find(child.address())
                    && number as usize >= first
                    && graph.node(number).reach == Reach::Cycle
                {
                    graph.nodes[number as usize].reach = Reach::Outside;
                    graph.nodes[number as usize].parent = from;
                    queue.push(number);
                }
            });
        }
    }
}
