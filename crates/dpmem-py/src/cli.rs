//! The command line for Python: words in, options or an answer out.

use std::ffi::OsString;
use std::path::PathBuf;

use dpmem_cli::{
    Destination, DevicesOptions, DoctorOptions, Outcome, PlanOptions, RunOptions, Target, WatchOptions,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Registers this module's functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(cli_parse, module)?)?;
    module.add_function(wrap_pyfunction!(cli_report_problem, module)?)?;
    module.add_function(wrap_pyfunction!(cli_write_report, module)?)?;
    module.add_function(wrap_pyfunction!(cli_spawned_path, module)?)?;
    module.add_function(wrap_pyfunction!(cli_lint, module)?)
}

/// Reads a command line: a dict with `command` "run" and the options, or with `command` "exit", `code`,
/// `stdout` and `stderr`.
#[pyfunction]
fn cli_parse(py: Python<'_>, words: Vec<OsString>) -> PyResult<Bound<'_, PyDict>> {
    let answer = PyDict::new(py);
    match dpmem_cli::parse(words) {
        Outcome::Run(RunOptions { json, pool, limit, stack_depth, fail_on, summary, target, arguments }) => {
            let (kind, name) = match target {
                Target::Script(name) => ("script", name),
                Target::Module(name) => ("module", name),
                Target::Code(name) => ("code", name),
            };
            answer.set_item("command", "run")?;
            answer.set_item("json", json.map(PathBuf::into_os_string))?;
            answer.set_item("pool", pool)?;
            answer.set_item("limit", limit)?;
            answer.set_item("stack_depth", stack_depth)?;
            answer.set_item("fail_on", fail_on)?;
            answer.set_item("summary", summary)?;
            answer.set_item("kind", kind)?;
            answer.set_item("target", name)?;
            answer.set_item("arguments", arguments)?;
        }
        Outcome::Lint(arguments) => {
            answer.set_item("command", "lint")?;
            answer.set_item("arguments", arguments)?;
        }
        Outcome::Devices(DevicesOptions { json, probe }) => {
            answer.set_item("command", "devices")?;
            answer.set_item("json", json)?;
            answer.set_item("probe", probe)?;
        }
        Outcome::Doctor(DoctorOptions { json, only, skip, bundle }) => {
            answer.set_item("command", "doctor")?;
            answer.set_item("json", json)?;
            answer.set_item("only", only)?;
            answer.set_item("skip", skip)?;
            answer.set_item("bundle", bundle.map(PathBuf::into_os_string))?;
        }
        Outcome::Watch(WatchOptions { interval_ms, count, format, pid }) => {
            answer.set_item("command", "watch")?;
            answer.set_item("interval_ms", interval_ms)?;
            answer.set_item("count", count)?;
            answer.set_item("format", format.name())?;
            answer.set_item("pid", pid)?;
        }
        Outcome::Plan(PlanOptions { function, source, budget, device, json }) => {
            answer.set_item("command", "plan")?;
            answer.set_item("module", function.module)?;
            answer.set_item("function", function.name)?;
            answer.set_item("source", source)?;
            answer.set_item("budget", budget)?;
            answer.set_item("device", device)?;
            answer.set_item("json", json)?;
        }
        Outcome::Exit(exit) => {
            answer.set_item("command", "exit")?;
            answer.set_item("code", exit.code)?;
            answer.set_item("stdout", exit.stdout)?;
            answer.set_item("stderr", exit.stderr)?;
        }
    }
    Ok(answer)
}

/// Runs the linter with its own arguments on the process's own streams; the answer is the exit code.
#[pyfunction]
fn cli_lint(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| {
        let mut output = std::io::BufWriter::new(std::io::stdout());
        let code = dpmem_lint::run(arguments, &mut std::io::stdin(), &mut output, &mut std::io::stderr());
        // A reader that has gone needs no message.
        let _ = std::io::Write::flush(&mut output);
        code
    })
}

/// Why a report cannot be written to `path`, as a text that fits after "cannot", or None.
#[pyfunction]
fn cli_report_problem(path: OsString) -> Option<String> {
    destination(path).check().err().map(|error| error.to_string())
}

/// Writes a report file in one piece; the answer is as for `cli_report_problem`.
#[pyfunction]
fn cli_write_report(py: Python<'_>, path: OsString, text: String) -> Option<String> {
    py.detach(|| destination(path).write(&text).err().map(|error| error.to_string()))
}

/// Where the spawned child process `pid` writes its report.
#[pyfunction]
fn cli_spawned_path(path: OsString, pid: u32) -> OsString {
    dpmem_cli::spawned_path(&PathBuf::from(path), pid).into_os_string()
}

fn destination(path: OsString) -> Destination {
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Destination::new(&PathBuf::from(path), &folder)
}
