//! How one object refers to another, in a person's words: attribute, key, index, variable.
//!
//! Nothing is asked that a class of the program could answer: dicts are gone through entry by entry, slots are read
//! with their descriptors, variables where `Layout` found them. A key that isn't a plain number, text or the like is
//! named by its type.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyTuple};

use super::code::{Code, text};
use super::facts::Vocabulary;
use super::graph::{ByAddress, Graph, NONE, Reach};
use super::layout::Layout;
use super::object::{Halt, Ref, Traversal, code_of, read, reasons_of, type_at};
use super::roots::Root;
use super::types::Class;

/// How an object refers to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// In a way that needs no word.
    Through,
    /// The other is the dict of its attributes.
    Names,
    Attribute(String),
    /// A key of a dict: its text if it is one, and as it is shown.
    Key(Option<String>, String),
    /// As a key of a dict.
    KeyItself,
    Index(usize),
    Element,
    /// A variable of a function.
    Variable {
        function: String,
        name: String,
    },
    /// The other is the dict that `f_locals` made of a frame's variables: the function.
    Locals(String),
    Traceback,
    Defaults,
    KeywordDefaults,
    Closure,
    /// A result that a cache keeps.
    Cached,
    /// The other is the dict of those results.
    CacheTable,
    /// In a way without a name: the other's type.
    Unnamed(String),
}

/// Ways from one object to one other that are told.
const MAX_WAYS: usize = 8;
/// A deque is looked through up to this length: finding an item takes longer the further in it is.
const MAX_DEQUE: usize = 20_000;
/// Characters of a key that are shown.
const MAX_KEY: usize = 40;

/// Objects that are looked for, by address, and how they were found to be referred to.
pub(super) type Ways = ByAddress<Vec<Link>>;

pub(super) struct Links<'h, 'py> {
    pub(super) halt: &'h Halt<'py>,
    pub(super) vocabulary: &'h Vocabulary<'py>,
    pub(super) layout: &'h Layout,
    pub(super) roots: &'h [Root<'h>],
    /// Slots by type: name and descriptor.
    slots: HashMap<usize, Vec<(String, Bound<'py, PyAny>)>>,
}

impl<'h, 'py> Links<'h, 'py> {
    pub(super) fn new(
        halt: &'h Halt<'py>,
        vocabulary: &'h Vocabulary<'py>,
        layout: &'h Layout,
        roots: &'h [Root<'h>],
    ) -> Self {
        Links { halt, vocabulary, layout, roots, slots: HashMap::new() }
    }

    /// Finds out how node `from` refers to each of the objects in `ways`.
    pub(super) fn name(&mut self, graph: &Graph<'h, 'py>, from: u32, ways: &mut Ways) {
        let (object, class) = (graph.node(from).object, graph.node(from).class);
        if let Reach::Root(number) = graph.node(from).reach
            && graph.node(from).parent == NONE
            && class == Class::Frame
        {
            self.variables_of_root(number, ways);
            namespace(graph, ways);
            ways.values_mut().filter(|links| links.is_empty()).for_each(|links| links.push(Link::Through));
            return;
        }
        match class {
            Class::Dict => entries(self.halt, object, ways),
            Class::List => items(object, true, ways),
            Class::Tuple => self.tuple(object, ways),
            Class::Set => ways.values_mut().for_each(|links| links.push(Link::Element)),
            Class::Deque => self.deque(object, ways),
            Class::Function => self.function(object, ways),
            Class::Frame => self.frame(graph, object, ways),
            Class::Generator => self.generator(graph, object, ways),
            Class::Exception => exception(graph, object, ways),
            Class::Cell | Class::Traceback => ways.values_mut().for_each(|links| links.push(Link::Through)),
            Class::Ndarray | Class::Buffer => {}
            Class::LruCache => self.lru_cache(graph, object, ways),
            Class::Module | Class::Type => namespace(graph, ways),
            _ => {}
        }
        if ways.values().any(Vec::is_empty) {
            self.attributes(object, ways);
        }
        if class == Class::Ndarray {
            self.array_items(object, ways);
        }
        for (address, links) in ways.iter_mut().filter(|(_, links)| links.is_empty()) {
            links.push(match (class, graph.find(*address).map(|number| graph.node(number).class)) {
                (Class::ThreadLocal | Class::Buffer, _) => Link::Through,
                (_, Some(Class::Function | Class::Cell | Class::Generator)) => Link::Through,
                (_, Some(number)) if number.is_array() => Link::Unnamed(String::new()),
                (_, Some(_)) => Link::Unnamed(self.type_name(graph, *address)),
                (_, None) => Link::Through,
            });
        }
    }

    fn type_name(&self, graph: &Graph<'h, 'py>, address: usize) -> String {
        let number = graph.find(address);
        number.map_or_else(String::new, |number| graph.types.name(graph.node(number).object.type_address()))
    }

    fn variables_of_root(&self, number: u32, ways: &mut Ways) {
        let root = &self.roots[number as usize];
        for (name, address) in &root.names {
            note(ways, *address, || Link::Variable { function: String::new(), name: name.clone() });
        }
    }

    fn tuple(&self, object: Ref<'h>, ways: &mut Ways) {
        let fields = self.fields(object);
        object.items(false, |index, item| {
            note(ways, item, || match fields.get(index) {
                Some(field) => Link::Attribute(field.clone()),
                None => Link::Index(index),
            });
        });
    }

    /// The field names of a named tuple.
    fn fields(&self, object: Ref<'h>) -> Vec<String> {
        let own = self.class_dict(object.type_address());
        let fields = own.as_ref().and_then(|own| entry(own, "_fields"));
        let fields = fields.and_then(|fields| fields.cast_into_exact::<PyTuple>().ok());
        fields.iter().flat_map(|fields| fields.iter()).filter_map(|field| text(&field)).collect()
    }

    fn deque(&self, object: Ref<'h>, ways: &mut Ways) {
        let Some(deque) = &self.vocabulary.deque else { return };
        let mut index = 0;
        object.sequence_items(Ref::of(deque).address(), MAX_DEQUE, |item| {
            note(ways, item, || Link::Index(index));
            index += 1;
        });
        ways.values_mut().filter(|links| links.is_empty()).for_each(|links| links.push(Link::Element));
    }

    fn function(&self, object: Ref<'h>, ways: &mut Ways) {
        let Some(parts) = self.layout.function_parts(object) else { return };
        note(ways, parts.defaults, || Link::Defaults);
        note(ways, parts.keyword_defaults, || Link::KeywordDefaults);
        note(ways, parts.closure, || Link::Closure);
    }

    /// What a function's code says.
    pub(super) fn code_of_function(&self, object: Ref<'h>) -> Option<Code> {
        let parts = self.layout.function_parts(object)?;
        let code = self.halt.variable(parts.code)?;
        Some(Code::of(&code.bound(self.halt)))
    }

    fn frame(&self, graph: &Graph<'h, 'py>, object: Ref<'h>, ways: &mut Ways) {
        let frame = object.bound(self.halt);
        let Some(code) = code_of(&frame).map(|code| Code::of(&code)) else { return };
        let words = self.layout.frame_variables(object, code.variables.len() + code.stack_size);
        let (words, stack) = words.split_at(code.variables.len().min(words.len()));
        variables(&code, words, ways);
        // What isn't a variable lies on its stack, or is the frame that called it, or the dict of its variables.
        let function = code.called();
        for (address, links) in ways.iter_mut().filter(|(_, links)| links.is_empty()) {
            let dict = graph.find(*address).is_some_and(|number| graph.node(number).class == Class::Dict);
            links.push(if dict && !stack.contains(address) {
                Link::Locals(function.clone())
            } else {
                Link::Variable { function: function.clone(), name: String::new() }
            });
        }
    }

    fn generator(&self, graph: &Graph<'h, 'py>, object: Ref<'h>, ways: &mut Ways) {
        let code = self.layout.generator_code(object).and_then(|code| self.halt.variable(code));
        let Some(code) = code.map(|code| Code::of(&code.bound(self.halt))) else { return };
        let words = self.layout.generator_variables(object, code.variables.len());
        variables(&code, &words, ways);
        let function = code.called();
        for (address, links) in ways.iter_mut().filter(|(_, links)| links.is_empty()) {
            // Up to 3.10 its frame is an object, which has the variables.
            let frame = graph.find(*address).is_some_and(|number| graph.node(number).class == Class::Frame);
            let name = String::new();
            links.push(if frame {
                Link::Through
            } else {
                Link::Variable { function: function.clone(), name }
            });
        }
    }

    /// A cache without a bound refers to results through a dict, one with a bound itself.
    fn lru_cache(&self, graph: &Graph<'h, 'py>, object: Ref<'h>, ways: &mut Ways) {
        let wrapped =
            object.attribute_dict(self.halt.py()).and_then(|dict| dict.cast_into_exact::<PyDict>().ok());
        let wrapped =
            wrapped.and_then(|dict| entry(&dict, "__wrapped__")).map_or(0, |it| it.as_ptr() as usize);
        // The dict is told to the collector right before the function.
        let (mut before, mut table) = (0, 0);
        if let Some(traversal) = Traversal::of(object.type_address()) {
            object.refer_to(&traversal, |child| {
                table = if child.address() == wrapped && table == 0 { before } else { table };
                before = child.address();
            });
        }
        for (address, links) in ways.iter_mut() {
            let class = graph.find(*address).map(|number| graph.node(number).class);
            links.push(match class {
                _ if *address == wrapped => Link::Attribute("__wrapped__".to_string()),
                Some(Class::Dict) if *address == table => Link::CacheTable,
                _ => Link::Cached,
            });
        }
    }

    /// Attributes: in the object's dict, in its slots and in the fields of built-in types.
    fn attributes(&mut self, object: Ref<'h>, ways: &mut Ways) {
        if let Some(dict) = object.attribute_dict(self.halt.py()) {
            note(ways, dict.as_ptr() as usize, || Link::Names);
            if dict.is_instance_of::<PyDict>() {
                Ref::of(&dict).entries(|key, value| {
                    note(ways, value.address(), || {
                        Link::Attribute(text(&key.bound(self.halt)).unwrap_or_else(|| "?".to_string()))
                    });
                    true
                });
            }
        }
        if ways.values().all(|links| !links.is_empty()) {
            return;
        }
        let this = object.bound(self.halt);
        for (name, descriptor) in self.slots_of(object.type_address()) {
            if let Some(value) = read(descriptor, &this) {
                note(ways, value.as_ptr() as usize, || Link::Attribute(name.clone()));
            }
        }
    }

    fn slots_of(&mut self, type_address: usize) -> &[(String, Bound<'py, PyAny>)] {
        if !self.slots.contains_key(&type_address) {
            let found = self.find_slots(type_address);
            self.slots.insert(type_address, found);
        }
        &self.slots[&type_address]
    }

    fn find_slots(&self, type_address: usize) -> Vec<(String, Bound<'py, PyAny>)> {
        let kind = type_at(self.halt, type_address);
        let order = kind.and_then(|kind| read(&self.vocabulary.type_mro, &kind));
        let order = order.and_then(|order| order.cast_into_exact::<PyTuple>().ok());
        let mut slots = Vec::new();
        for class in order.iter().flat_map(|order| order.iter()) {
            let Some(own) = self.class_dict(class.as_ptr() as usize) else { continue };
            for (name, value) in own.iter() {
                if value.get_type().is(&self.vocabulary.member)
                    && let Some(name) = text(&name)
                {
                    slots.push((name, value));
                }
            }
        }
        slots
    }

    /// A copy of the dict of a class.
    fn class_dict(&self, type_address: usize) -> Option<Bound<'py, PyDict>> {
        let proxy = read(&self.vocabulary.type_dict, &type_at(self.halt, type_address)?)?;
        // Every class has a plain dict behind the proxy, so this is `dict.copy`.
        proxy.call_method0("copy").ok()?.cast_into_exact::<PyDict>().ok()
    }

    fn array_items(&self, object: Ref<'h>, ways: &mut Ways) {
        let flat =
            self.vocabulary.ndarray_flat.as_ref().and_then(|flat| read(flat, &object.bound(self.halt)));
        let items = flat.and_then(|flat| flat.try_iter().ok());
        for (index, item) in items.into_iter().flatten().take(super::graph::MAX_ITEMS).enumerate() {
            let Ok(item) = item else { return };
            note(ways, item.as_ptr() as usize, || Link::Index(index));
        }
    }
}

fn variables(code: &Code, words: &[usize], ways: &mut Ways) {
    for (name, word) in code.variables.iter().zip(words) {
        note(ways, *word, || Link::Variable { function: code.called(), name: name.clone() });
    }
}

fn note(ways: &mut Ways, address: usize, link: impl FnOnce() -> Link) {
    if let Some(links) = ways.get_mut(&address)
        && links.len() < MAX_WAYS
    {
        links.push(link());
    }
}

fn entries(halt: &Halt<'_>, object: Ref<'_>, ways: &mut Ways) {
    object.entries(|key, value| {
        if ways.contains_key(&value.address()) {
            let (raw, shown) = described(&key.bound(halt));
            note(ways, value.address(), || Link::Key(raw, shown));
        }
        note(ways, key.address(), || Link::KeyItself);
        true
    });
}

fn items(object: Ref<'_>, is_list: bool, ways: &mut Ways) {
    object.items(is_list, |index, item| note(ways, item, || Link::Index(index)));
}

fn exception(graph: &Graph<'_, '_>, object: Ref<'_>, ways: &mut Ways) {
    let (cause, context) = reasons_of(object);
    note(ways, cause, || Link::Attribute("__cause__".to_string()));
    if context != cause {
        note(ways, context, || Link::Attribute("__context__".to_string()));
    }
    for (address, links) in ways.iter_mut().filter(|(_, links)| links.is_empty()) {
        match graph.find(*address).map(|number| graph.node(number).class) {
            Some(Class::Traceback) => links.push(Link::Traceback),
            Some(Class::Tuple) => links.push(Link::Attribute("args".to_string())),
            _ => {}
        }
    }
}

fn namespace(graph: &Graph<'_, '_>, ways: &mut Ways) {
    for (address, links) in ways.iter_mut().filter(|(_, links)| links.is_empty()) {
        if graph.find(*address).is_some_and(|number| graph.node(number).class == Class::Dict) {
            links.push(Link::Names);
        }
    }
}

fn entry<'py>(dict: &Bound<'py, PyDict>, name: &str) -> Option<Bound<'py, PyAny>> {
    dict.iter().find(|(key, _)| text(key).is_some_and(|key| key == name)).map(|(_, value)| value)
}

/// A key as text, if it is one, and as it is written in a program; objects of the program by their type.
pub(super) fn described(key: &Bound<'_, PyAny>) -> (Option<String>, String) {
    if let Some(text) = text(key) {
        let quoted = format!("'{}'", cut(&text.replace(['\n', '\r', '\t'], " ")));
        return (Some(text), quoted);
    }
    let plain = key.cast_exact::<PyInt>().is_ok()
        || key.cast_exact::<PyFloat>().is_ok()
        || key.cast_exact::<PyBool>().is_ok()
        || key.cast_exact::<PyBytes>().is_ok()
        || key.is_none();
    if plain && let Ok(shown) = key.repr() {
        return (None, cut(&shown.to_string_lossy()));
    }
    if let Ok(tuple) = key.cast_exact::<PyTuple>() {
        let parts: Vec<String> = tuple.iter().take(4).map(|part| described_flat(&part)).collect();
        let more = if tuple.len() > 4 { ", …" } else { "" };
        return (None, format!("({}{more})", parts.join(", ")));
    }
    (None, "…".to_string())
}

fn described_flat(key: &Bound<'_, PyAny>) -> String {
    if key.cast_exact::<PyTuple>().is_ok() { "(…)".to_string() } else { described(key).1 }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_KEY {
        return text.to_string();
    }
    text.chars().take(MAX_KEY - 1).chain(['…']).collect()
}
