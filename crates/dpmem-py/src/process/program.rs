//! Runs a main module the way the interpreter's own start-up does: called from native code, so that no frame
//! of ours is in a traceback, and with an uncaught exception handed to the interpreter's own printer.
#![allow(unsafe_code)] // `PyEval_EvalCode`, `PyFile_WriteObject` and `fflush` have no safe form

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PySystemExit};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyInt};

const PRINT_RAW: c_int = 1;
const SIGINT: i32 = libc::SIGINT;

/// How a main module ended.
#[pyclass(frozen, module = "dpmem._native")]
pub(crate) struct ProgramEnd {
    /// What `sys.exit` is to be called with.
    #[pyo3(get)]
    status: Py<PyAny>,
    /// The exit code as a parent process sees it: 0 to 255, or minus a signal's number.
    #[pyo3(get)]
    exit_code: i32,
    /// The signal that the interpreter kills itself with in the end, or 0.
    #[pyo3(get)]
    signal: i32,
    /// Whether it was `SystemExit`: then CPython leaves before it tidies `__main__`.
    #[pyo3(get)]
    by_system_exit: bool,
}

/// Registers this module's functions.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ProgramEnd>()?;
    module.add_function(wrap_pyfunction!(program_run_source, module)?)?;
    module.add_function(wrap_pyfunction!(program_run_code, module)?)?;
    module.add_function(wrap_pyfunction!(program_run_module, module)?)
}

/// Compiles and runs source text (str or bytes) in `namespace`. `lines`, if given, is called with the code
/// object before it runs.
#[pyfunction]
#[pyo3(signature = (source, filename, namespace, lines = None))]
fn program_run_source(
    py: Python<'_>,
    source: Bound<'_, PyAny>,
    filename: Bound<'_, PyAny>,
    namespace: Bound<'_, PyDict>,
    lines: Option<Bound<'_, PyAny>>,
) -> PyResult<ProgramEnd> {
    let outcome = (|| {
        let compile = py.import("builtins")?.getattr("compile")?;
        let code = compile.call1((source, filename, "exec", 0, true))?;
        if let Some(lines) = lines {
            lines.call1((&code,))?;
        }
        evaluate(&code, &namespace)
    })();
    ended(py, outcome)
}

/// Runs what a `.pyc` file holds behind its header: `load(data)` gives the code object. No `load` stands for
/// a header of another interpreter.
#[pyfunction]
fn program_run_code(
    py: Python<'_>,
    load: Option<Bound<'_, PyAny>>,
    data: Bound<'_, PyAny>,
    namespace: Bound<'_, PyDict>,
) -> PyResult<ProgramEnd> {
    let outcome = (|| {
        let load = load.ok_or_else(|| PyRuntimeError::new_err("Bad magic number in .pyc file"))?;
        let code = load.call1((data,))?;
        if code.get_type().name()? != "code" {
            return Err(PyRuntimeError::new_err("Bad code object in .pyc file"));
        }
        evaluate(&code, &namespace)
    })();
    ended(py, outcome)
}

/// Runs a module as `python -m` does, or with `alter_argv` false the `__main__` of the folder or zip file at
/// `sys.path[0]`.
#[pyfunction]
fn program_run_module(py: Python<'_>, name: Bound<'_, PyAny>, alter_argv: bool) -> PyResult<ProgramEnd> {
    let outcome = (|| {
        // The function that CPython itself calls for `-m`: its frames and messages are the ones users know.
        let run = py.import("runpy")?.getattr("_run_module_as_main")?;
        run.call1((name, alter_argv)).map(drop)
    })();
    ended(py, outcome)
}

fn evaluate(code: &Bound<'_, PyAny>, namespace: &Bound<'_, PyDict>) -> PyResult<()> {
    // SAFETY: the thread is attached (both arguments are bound to that). `code` is a code object: it came
    // from `compile` or was checked in `program_run_code`. `namespace` is a dict. The result is a new
    // reference or null with an exception set, which is what `from_owned_ptr_or_err` takes over.
    let result = unsafe {
        let value = ffi::PyEval_EvalCode(code.as_ptr(), namespace.as_ptr(), namespace.as_ptr());
        Bound::from_owned_ptr_or_err(code.py(), value)
    };
    result.map(drop)
}

fn ended(py: Python<'_>, outcome: PyResult<()>) -> PyResult<ProgramEnd> {
    let Err(error) = outcome else { return Ok(ProgramEnd::with_code(py, 0)) };
    if error.is_instance_of::<PySystemExit>(py) {
        return system_exit(py, &error);
    }
    // CPython compares the type itself here, subclasses do not count.
    let interrupted = error.get_type(py).is(py.get_type::<PyKeyboardInterrupt>());
    if let Some(exit) = print_exception(py, error)? {
        return system_exit(py, &exit);
    }
    if interrupted {
        let end = ProgramEnd::with_code(py, 128 + SIGINT);
        return Ok(ProgramEnd { exit_code: -SIGINT, signal: SIGINT, ..end });
    }
    Ok(ProgramEnd::with_code(py, 1))
}

/// Has the interpreter print an exception through `sys.excepthook`. A hook that raises `SystemExit` would
/// make the interpreter leave at once, past the report; then that is the result.
fn print_exception(py: Python<'_>, error: PyErr) -> PyResult<Option<PyErr>> {
    let sys = py.import("sys")?;
    let hook = sys.getattr("excepthook").ok().filter(|hook| !hook.is_none());
    let Some(hook) = hook.filter(|hook| !sys.getattr("__excepthook__").is_ok_and(|own| own.is(hook))) else {
        error.print_and_set_sys_last_vars(py);
        return Ok(None);
    };
    let exit: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let (slot, theirs) = (Arc::clone(&exit), hook.unbind());
    let in_between = PyCFunction::new_closure(py, None, None, move |arguments, _| {
        let (py, hook) = (arguments.py(), theirs.bind(arguments.py()));
        py.import("sys")?.setattr("excepthook", hook)?;
        match hook.call1(arguments.clone()) {
            Err(error) if error.is_instance_of::<PySystemExit>(py) => {
                if let Ok(mut slot) = slot.lock() {
                    *slot = Some(error);
                }
                Ok(())
            }
            other => other.map(drop),
        }
    })?;
    // The interpreter borrows the hook it calls, and this one takes itself out of `sys`: our reference keeps
    // it alive.
    sys.setattr("excepthook", &in_between)?;
    error.print_and_set_sys_last_vars(py);
    drop(in_between);
    Ok(exit.lock().ok().and_then(|mut exit| exit.take()))
}

impl ProgramEnd {
    fn with_code(py: Python<'_>, code: i32) -> Self {
        let status = PyInt::new(py, code).into_any().unbind();
        Self { status, exit_code: code, signal: 0, by_system_exit: false }
    }
}

/// As the interpreter does: none is 0, an integer is itself, anything else is printed and 1.
fn system_exit(py: Python<'_>, error: &PyErr) -> PyResult<ProgramEnd> {
    flush_c_output();
    let value = error.value(py).as_any().clone();
    let code = value.getattr("code").unwrap_or(value);
    let mut end = ProgramEnd::with_code(py, 0);
    if let Ok(number) = code.cast::<PyInt>() {
        // An integer that no C long holds becomes -1 there.
        end.exit_code = (number.extract::<i64>().unwrap_or(-1) & 0xff) as i32;
        end.status = code.unbind();
    } else if !code.is_none() {
        print_to_stderr(py, &code);
        end = ProgramEnd::with_code(py, 1);
    }
    Ok(ProgramEnd { by_system_exit: true, ..end })
}

fn print_to_stderr(py: Python<'_>, message: &Bound<'_, PyAny>) {
    let stderr = py.import("sys").and_then(|sys| sys.getattr("stderr")).ok().filter(|file| !file.is_none());
    // An error while printing has nowhere to go; CPython drops it as well.
    if let Some(file) = stderr {
        // SAFETY: attached, and both pointers are borrowed from live bounds. A negative result leaves an
        // exception, cleared below.
        unsafe {
            if ffi::PyFile_WriteObject(message.as_ptr(), file.as_ptr(), PRINT_RAW) < 0 {
                ffi::PyErr_Clear();
            }
        }
    } else if let Ok(text) = message.str() {
        let _ = super::output::write_all(libc::STDERR_FILENO, text.to_string_lossy().as_bytes());
    }
    const NEWLINE: &CStr = c"\n";
    // SAFETY: attached; the format is a C string without conversions.
    unsafe { ffi::PySys_WriteStderr(NEWLINE.as_ptr()) };
}

fn flush_c_output() {
    // SAFETY: a null stream asks for all output streams, which is always allowed.
    unsafe { libc::fflush(ptr::null_mut()) };
}
