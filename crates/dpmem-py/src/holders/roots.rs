//! Where chains begin: modules, running frames, threads, and the exception that is being handled.
//!
//! The order of the groups is that in which a person would rather name a root: `__main__`, the user's other modules,
//! `sys`, running frames, threads, libraries, `builtins`.

use dpmem_core::LibraryPaths;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use super::code::{Code, text};
use super::facts::Request;
use super::layout::Layout;
use super::object::{Halt, Ref, code_of, handled_exception};

/// What a root is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RootName {
    /// A module's namespace.
    Module(String),
    /// A running frame.
    Frame { label: String, thread: Option<String> },
    /// A thread's object.
    Thread(String),
    /// The exception that the calling thread is handling.
    Handled,
}

/// Where chains begin.
pub(super) struct Root<'h> {
    pub(super) group: u8,
    pub(super) name: RootName,
    object: Ref<'h>,
    /// A module's namespace, which needs no step of its own.
    namespace: Option<Ref<'h>>,
    /// What a frame's variables refer to.
    pub(super) variables: Vec<Ref<'h>>,
    /// The variables' names and addresses.
    pub(super) names: Vec<(String, usize)>,
    /// What may be on a frame's stack, or was once: to be compared with, never followed.
    pub(super) stack: Vec<usize>,
}

impl<'h> Root<'h> {
    fn new(group: u8, name: RootName, object: Ref<'h>) -> Self {
        let (variables, names, stack) = Default::default();
        Root { group, name, object, namespace: None, variables, names, stack }
    }

    /// The objects that belong to it.
    pub(super) fn objects(&self) -> impl Iterator<Item = Ref<'h>> + use<'h> {
        [Some(self.object), self.namespace].into_iter().flatten()
    }
}

const MAIN: u8 = 0;
const USER: u8 = 1;
const SYS: u8 = 2;
const FRAMES: u8 = 3;
const THREADS: u8 = 4;
const LIBRARIES: u8 = 5;
const BUILTINS: u8 = 6;

/// Objects that the roots refer to, held for as long as the walk lasts.
pub(super) struct Kept<'py> {
    modules: Vec<(String, Bound<'py, PyAny>, Option<Bound<'py, PyDict>>)>,
    frames: Vec<(u64, usize, Bound<'py, PyAny>)>,
    namespaces: Vec<(usize, Bound<'py, PyAny>)>,
    threads: Vec<(u64, String, Bound<'py, PyAny>)>,
    handled: Option<Bound<'py, PyAny>>,
}

impl<'py> Kept<'py> {
    /// Takes hold of them. Audit hooks of the program may hear of it, so it comes before the walk.
    pub(super) fn collect(request: &Request<'py>, frames: &Bound<'py, PyAny>) -> Self {
        let py = frames.py();
        let mut kept = Kept {
            modules: Vec::new(),
            frames: Vec::new(),
            namespaces: Vec::new(),
            threads: Vec::new(),
            handled: handled_exception(py),
        };
        for (name, module) in pairs(&request.modules) {
            let namespace = module.cast::<PyModule>().ok().map(|module| module.dict());
            kept.modules.push((text(&name).unwrap_or_default(), module, namespace));
        }
        for (thread, object) in request.threads.iter().flat_map(pairs) {
            let name = attribute(&object, "_name").unwrap_or_default();
            kept.threads.push((thread.extract().unwrap_or(0), name, object));
        }
        for (thread, innermost) in pairs(frames) {
            let thread = thread.extract().unwrap_or(0);
            let mut frame = Some(innermost);
            let mut depth = 0;
            while let Some(this) = frame {
                frame = this.getattr("f_back").ok().filter(|back| !back.is_none());
                kept.note_namespace(&this);
                kept.frames.push((thread, depth, this));
                depth += 1;
            }
        }
        kept
    }

    /// Code may run in a dict that is no module's; then that is found through its frame only.
    fn note_namespace(&mut self, frame: &Bound<'py, PyAny>) {
        let Some(code) = code_of(frame).map(|code| Code::of(&code)) else { return };
        // The locals of a function are no dict, and to ask for them would make one.
        let name = if code.optimized || code.shares { "f_globals" } else { "f_locals" };
        if let Ok(namespace) = frame.getattr(name)
            && namespace.cast_exact::<PyDict>().is_ok()
            && !self.modules.iter().any(|(_, _, own)| own.as_ref().is_some_and(|own| own.is(&namespace)))
        {
            self.namespaces.push((self.frames.len(), namespace));
        }
    }

    /// The roots, in the order of their groups; what else must not be walked into goes to `hidden`.
    pub(super) fn roots<'h>(
        &'h self,
        halt: &'h Halt<'py>,
        request: &Request<'py>,
        layout: &Layout,
        hidden: &mut Vec<Ref<'h>>,
    ) -> Vec<Root<'h>> {
        let libraries = LibraryPaths::new(request.libraries.iter().cloned());
        let mut roots = Vec::new();
        for (name, module, namespace) in &self.modules {
            let mut root = Root::new(
                group_of(name, namespace, &libraries),
                RootName::Module(name.clone()),
                Ref::of(module),
            );
            root.namespace = namespace.as_ref().map(|namespace| Ref::of(namespace.as_any()));
            roots.push(root);
        }
        for (number, (thread, _, frame)) in self.frames.iter().enumerate() {
            let Some(code) = code_of(frame).map(|code| Code::of(&code)) else { continue };
            let frame = Ref::of(frame);
            if code.path.starts_with(&request.own_folder) {
                hidden.push(frame);
                continue;
            }
            let thread = (*thread != request.main_thread).then(|| self.thread_name(*thread));
            let file = request.cells.get(&code.path).unwrap_or(&code.file);
            let label = format!("{file} {}", code.called());
            let mut root = Root::new(FRAMES, RootName::Frame { label, thread }, frame);
            fill(&mut root, halt, layout, &code);
            let namespace = self.namespaces.iter().find(|(of, _)| *of == number);
            root.namespace = namespace.map(|(_, namespace)| Ref::of(namespace));
            roots.push(root);
        }
        for (_, name, thread) in &self.threads {
            roots.push(Root::new(THREADS, RootName::Thread(name.clone()), Ref::of(thread)));
        }
        roots.extend(self.handled.iter().map(|error| Root::new(SYS, RootName::Handled, Ref::of(error))));
        // Frames of the main thread come first, each thread's from the outside in; the sort keeps that order.
        roots.sort_by_key(|root| root.group);
        roots
    }

    fn thread_name(&self, number: u64) -> String {
        let known = self.threads.iter().find(|(of, name, _)| *of == number && !name.is_empty());
        known.map_or_else(|| number.to_string(), |(_, name, _)| name.clone())
    }
}

/// Variables of a running frame. Their places hold a reference or nothing at any moment; its stack may hold what has
/// gone.
fn fill<'h>(root: &mut Root<'h>, halt: &'h Halt<'_>, layout: &Layout, code: &Code) {
    if !code.optimized && code.variables.is_empty() && code.stack_size == 0 {
        return;
    }
    let words = layout.frame_variables(root.object, code.variables.len() + code.stack_size);
    let (variables, stack) = words.split_at(code.variables.len().min(words.len()));
    root.stack = stack.iter().copied().filter(|word| *word != 0).collect();
    for (name, word) in code.variables.iter().zip(variables) {
        if let Some(value) = halt.variable(*word) {
            root.variables.push(value);
            root.names.push((name.clone(), *word));
        }
    }
}

fn group_of(name: &str, namespace: &Option<Bound<'_, PyDict>>, libraries: &LibraryPaths) -> u8 {
    match name {
        "__main__" => return MAIN,
        "sys" => return SYS,
        "builtins" => return BUILTINS,
        _ => {}
    }
    let file = namespace.as_ref().and_then(|namespace| namespace.get_item("__file__").ok().flatten());
    match file.as_ref().and_then(text) {
        Some(file) if !libraries.contains(&file) => USER,
        _ => LIBRARIES,
    }
}

/// An attribute that is a `str`, from the object's own dict.
fn attribute(object: &Bound<'_, PyAny>, name: &str) -> Option<String> {
    let dict = Ref::of(object).attribute_dict(object.py())?;
    dict.cast_exact::<PyDict>().ok()?.get_item(name).ok().flatten().as_ref().and_then(text)
}

fn pairs<'py>(dict: &Bound<'py, PyAny>) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    dict.cast::<PyDict>().map(|dict| dict.iter().collect()).unwrap_or_default()
}
