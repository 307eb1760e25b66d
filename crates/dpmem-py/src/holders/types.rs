//! What each type means to the walk, worked out once a type.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyModule, PySet, PyString, PyTuple, PyType};

use super::facts::Vocabulary;
use super::object::{Halt, Ref, Traversal, is_subtype, read};

/// What an object is to the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// Refers to nothing of interest.
    Leaf,
    /// Refers to others, and there is nothing more to say.
    Plain,
    Dict,
    List,
    Tuple,
    Set,
    Deque,
    Module,
    Type,
    Function,
    Cell,
    Frame,
    Traceback,
    Exception,
    /// A generator, coroutine or asynchronous generator.
    Generator,
    /// A `functools.lru_cache` wrapper.
    LruCache,
    /// An instance of a caching library's own classes.
    Cache,
    ThreadLocal,
    /// An instance of a notebook's own classes.
    Notebook,
    Ndarray,
    /// `dpnp.ndarray`.
    Dpnp,
    /// `usm_ndarray`.
    Usm,
    /// One of dpctl's memory objects.
    Memory,
    /// A memoryview, or the buffer behind it.
    Buffer,
}

impl Class {
    /// Whether it can stand for a block: an array, or what lies between an array and its memory.
    pub(super) fn is_array(self) -> bool {
        matches!(self, Class::Ndarray | Class::Dpnp | Class::Usm | Class::Memory | Class::Buffer)
    }
}

#[derive(Clone, Copy)]
pub(super) struct TypeFacts {
    pub(super) class: Class,
    pub(super) traversal: Option<Traversal>,
}

/// Entries of the table of recent types; a power of two.
const RECENT: usize = 1024;

/// Types met so far.
pub(super) struct Types<'h, 'py> {
    halt: &'h Halt<'py>,
    vocabulary: &'h Vocabulary<'py>,
    /// Base types and what their instances are; the first that fits counts.
    bases: Vec<(usize, Class)>,
    known: HashMap<usize, TypeFacts>,
    recent: Vec<(usize, TypeFacts)>,
}

impl<'h, 'py> Types<'h, 'py> {
    pub(super) fn new(halt: &'h Halt<'py>, vocabulary: &'h Vocabulary<'py>) -> Self {
        let py = halt.py();
        let v = vocabulary;
        let address = |kind: &Bound<'py, PyAny>| kind.as_ptr() as usize;
        let own = |kind: Bound<'py, PyType>| kind.as_ptr() as usize;
        let mut bases = vec![];
        bases.extend(v.dpnp.iter().map(|kind| (address(kind), Class::Dpnp)));
        bases.extend(v.usm.iter().map(|kind| (address(kind), Class::Usm)));
        bases.extend(v.memory.iter().map(|kind| (address(kind), Class::Memory)));
        bases.extend(v.ndarray.iter().map(|kind| (address(kind), Class::Ndarray)));
        bases.extend(v.buffers.iter().map(|kind| (address(kind), Class::Buffer)));
        bases.extend(v.generators.iter().map(|kind| (address(kind), Class::Generator)));
        bases.extend(v.lru_cache.iter().map(|kind| (address(kind), Class::LruCache)));
        bases.extend(v.thread_local.iter().map(|kind| (address(kind), Class::ThreadLocal)));
        bases.extend(v.deque.iter().map(|kind| (address(kind), Class::Deque)));
        bases.extend([
            (address(&v.function), Class::Function),
            (address(&v.frame), Class::Frame),
            (address(&v.traceback), Class::Traceback),
            (address(&v.cell), Class::Cell),
            (address(&v.exception), Class::Exception),
            (own(py.get_type::<PyModule>()), Class::Module),
            (own(py.get_type::<PyType>()), Class::Type),
            (own(py.get_type::<PyDict>()), Class::Dict),
            (own(py.get_type::<PyList>()), Class::List),
            (own(py.get_type::<PyTuple>()), Class::Tuple),
            (own(py.get_type::<PySet>()), Class::Set),
            (own(py.get_type::<PyFrozenSet>()), Class::Set),
        ]);
        let nothing = (0, TypeFacts { class: Class::Leaf, traversal: None });
        Types { halt, vocabulary, bases, known: HashMap::new(), recent: vec![nothing; RECENT] }
    }

    /// What an object's type means.
    pub(super) fn of(&mut self, object: Ref<'_>) -> TypeFacts {
        let address = object.type_address();
        let slot = (address >> 4) & (RECENT - 1);
        if self.recent[slot].0 == address {
            return self.recent[slot].1;
        }
        let facts = match self.known.get(&address) {
            Some(facts) => *facts,
            None => {
                let facts = self.judge(address);
                self.known.insert(address, facts);
                facts
            }
        };
        self.recent[slot] = (address, facts);
        facts
    }

    fn judge(&self, address: usize) -> TypeFacts {
        let traversal = Traversal::of(address);
        let base = self.bases.iter().find(|(base, _)| is_subtype(address, *base)).map(|(_, class)| *class);
        let mut class = base.unwrap_or(if traversal.is_some() { Class::Plain } else { Class::Leaf });
        if !class.is_array() && traversal.is_some() {
            class = self.by_module(address).unwrap_or(class);
        }
        TypeFacts { class, traversal }
    }

    /// Libraries whose classes say by themselves what they are for. A dict, list or the like stays what it is.
    fn by_module(&self, address: usize) -> Option<Class> {
        let module = self.module(address)?;
        let package = module.split('.').next()?;
        match package {
            "IPython" | "ipykernel" => Some(Class::Notebook),
            "cachetools" => Some(Class::Cache),
            _ => None,
        }
    }

    fn kind(&self, address: usize) -> Option<Bound<'py, PyAny>> {
        super::object::type_at(self.halt, address)
    }

    /// The module that a type says it is from.
    pub(super) fn module(&self, address: usize) -> Option<String> {
        let module = read(&self.vocabulary.type_module, &self.kind(address)?)?;
        module.cast_exact::<PyString>().ok().map(|text| text.to_string_lossy().into_owned())
    }

    /// A type's name.
    pub(super) fn name(&self, address: usize) -> String {
        let name = self.kind(address).and_then(|kind| read(&self.vocabulary.type_name, &kind));
        name.and_then(|name| {
            name.cast_exact::<PyString>().ok().map(|text| text.to_string_lossy().into_owned())
        })
        .unwrap_or_else(|| "object".to_string())
    }
}
