//! Code objects: what a function is called and in which order its frame keeps its variables.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// Flag of code whose variables have fixed places, which that of modules and class bodies doesn't have.
const OPTIMIZED: u32 = 1;

/// What a code object says.
pub(super) struct Code {
    /// File without its folders.
    pub(super) file: String,
    /// The whole path.
    pub(super) path: String,
    pub(super) function: String,
    /// Variables in the order of their places in a frame.
    pub(super) variables: Vec<String>,
    /// Parameters that may be given by position.
    pub(super) positional: usize,
    /// Variables of outer functions, as a function's closure lists them.
    pub(super) free: Vec<String>,
    pub(super) stack_size: usize,
    pub(super) optimized: bool,
    /// Whether it shares variables with other functions.
    pub(super) shares: bool,
}

impl Code {
    /// Reads a code object; nothing of the program runs, since nobody can derive from its type.
    pub(super) fn of(code: &Bound<'_, PyAny>) -> Self {
        let names = |attribute: &str| texts(code.getattr(attribute).ok());
        let number = |attribute: &str| code.getattr(attribute).and_then(|n| n.extract()).unwrap_or(0usize);
        let text = |attribute: &str| code.getattr(attribute).ok().as_ref().and_then(text).unwrap_or_default();
        let (own, cells, free) = (names("co_varnames"), names("co_cellvars"), names("co_freevars"));
        let one_place_each = code.py().version_info() >= (3, 11);
        let shares = !cells.is_empty() || !free.is_empty();
        let mut variables = own.clone();
        // Up to 3.10 a parameter that an inner function uses has two places, and the first is empty.
        variables.extend(cells.into_iter().filter(|cell| !(one_place_each && own.contains(cell))));
        variables.extend(free.iter().cloned());
        let path = text("co_filename");
        Code {
            file: path.rsplit('/').next().unwrap_or_default().to_string(),
            path,
            function: text("co_name"),
            variables,
            positional: number("co_argcount"),
            free,
            stack_size: number("co_stacksize"),
            optimized: number("co_flags") as u32 & OPTIMIZED != 0,
            shares,
        }
    }

    /// `step()`; without parentheses what is no function.
    pub(super) fn called(&self) -> String {
        let function = self.optimized && !self.function.starts_with('<');
        if function { format!("{}()", self.function) } else { self.function.clone() }
    }
}

/// The text of a `str` itself; a subclass could answer anything.
pub(super) fn text(object: &Bound<'_, PyAny>) -> Option<String> {
    object.cast_exact::<PyString>().ok().map(|text| text.to_string_lossy().into_owned())
}

fn texts(tuple: Option<Bound<'_, PyAny>>) -> Vec<String> {
    let tuple = tuple.and_then(|tuple| tuple.cast_into_exact::<PyTuple>().ok());
    tuple.iter().flat_map(|tuple| tuple.iter()).filter_map(|name| text(&name)).collect()
}
