//! The grammar of `dpmem plan`.

use std::ffi::OsString;

use clap::Args;

/// Say in which chunks a function can go through data that is larger than the device
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "\
Imports MODULE, looked for in the current folder first, and calls FUNCTION on two small parts of the
data, to learn how much device memory it takes. Exit code 2: no chunk fits, or something is not there.")]
pub struct PlanOptions {
    /// The function, which takes a dpnp array, or as many as there are sources
    #[arg(value_name = "MODULE:FUNCTION", value_parser = function)]
    pub function: Function,

    /// A .npy file, or a pattern of files that are read one after another
    #[arg(value_name = "SOURCE")]
    pub source: OsString,

    /// Share of the free memory to use, above 0 and at most 1
    #[arg(long, value_name = "F", default_value_t = 0.6, value_parser = budget)]
    pub budget: f64,

    /// The device, as a filter string such as gpu or opencl:cpu:0; the default device if left out
    #[arg(long, value_name = "D")]
    pub device: Option<String>,

    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

/// A function by its module and its name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// As in an import.
    pub module: String,
    /// A name in the module, with dots for attributes.
    pub name: String,
}

fn function(word: &str) -> Result<Function, String> {
    match word.split_once(':') {
        Some((module, name)) if !module.is_empty() && !name.is_empty() => {
            Ok(Function { module: module.to_owned(), name: name.to_owned() })
        }
        _ => Err("expected a module and a function in it, such as analysis:normalise".to_owned()),
    }
}

fn budget(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("expected a number above 0 and at most 1".to_owned()),
    }
}
