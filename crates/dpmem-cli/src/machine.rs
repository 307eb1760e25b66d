//! The grammar of the commands that look at the machine: `devices`, `doctor`, `watch`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// List every device, the default, and why it is the default
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = "\
Shows what programs see under dpmem run. GPUs that the operating system shows and SYCL does not
are listed with the reason. Exit code 2: SYCL could not be asked.")]
pub struct DevicesOptions {
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,

    /// Also allocate and compute on each device, which starts a context there
    #[arg(long)]
    pub probe: bool,
}

/// Check why there is no device, or not the one that was expected, and say what to do
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = "\
Looks at the environment as python itself would find it, without the help that dpmem run gives.
Exit code 1: a check failed.")]
pub struct DoctorOptions {
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,

    /// Run these checks only, separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Leave these checks out
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub skip: Vec<String>,

    /// Write an archive for a bug report, readable by you alone and without names of yours
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
}

/// Sample the memory of devices and processes
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = "\
Reads what the system tells, on no device's account. Programs under dpmem run, and those that called
dpmem.start(), also show their USM in use. Ends after --count samples, or when interrupted.")]
pub struct WatchOptions {
    /// Milliseconds between samples
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=86_400_000))]
    pub interval_ms: u64,

    /// Samples to take; without it, until interrupted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// How to write samples; json is one object a line
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: Format,

    /// Show this process only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
}

/// How samples are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// A header and one line for each device or process and sample.
    Csv,
    /// One object a line.
    Json,
}

impl Format {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Json => "json",
        }
    }
}
