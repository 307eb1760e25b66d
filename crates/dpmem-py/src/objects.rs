//! Objects of given types, among all that the garbage collector knows.

use std::collections::HashSet;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(objects_of, module)?)
}

/// Objects of exactly these types, of those that `universe` (which is `gc.get_objects`) answers with.
///
/// The list of all objects must be gone before another thread runs: it refers to objects that other threads are still
/// building, and the interpreter takes for granted that nobody else does. So this loop lets the GIL go nowhere.
#[pyfunction]
fn objects_of(universe: &Bound<'_, PyAny>, types: Vec<Bound<'_, PyType>>) -> PyResult<Vec<Py<PyAny>>> {
    let wanted: HashSet<_> = types.iter().map(|kind| kind.as_type_ptr()).collect();
    let all = universe.call0()?.cast_into::<PyList>()?;
    let found = all.iter().filter(|object| wanted.contains(&object.get_type_ptr())).map(Bound::unbind);
    Ok(found.collect())
}
