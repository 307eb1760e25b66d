//! The grammar of `dpmem` and its commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::machine::{DevicesOptions, DoctorOptions, WatchOptions};
use crate::plan::PlanOptions;
use dpmem_core::findings;

use crate::rules;

/// The deepest stack that can be asked for, in Python frames.
const MAX_STACK_DEPTH: u32 = 128;

const USAGE: &str = "dpmem run [OPTIONS] (SCRIPT | -m MODULE | -c CODE) [ARGS]...";
const AFTER_HELP: &str = "\
The program runs in this interpreter as python would run it: same arguments, input, output,
signals and exit code. All that follows SCRIPT, MODULE or CODE belongs to the program.
The summary goes to standard error. Interpreter options go before -m:
  python -X dev -m dpmem run SCRIPT";

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Run a program and report.
    Run(RunOptions),
    /// Run the linter, which reads these arguments itself.
    Lint(Vec<OsString>),
    /// List the devices.
    Devices(DevicesOptions),
    /// Check the environment.
    Doctor(DoctorOptions),
    /// Sample devices and processes.
    Watch(WatchOptions),
    /// Find the chunk that fits.
    Plan(PlanOptions),
    /// Nothing to run: write these texts and leave with this code.
    Exit(Exit),
}

/// A command line that is answered at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// 0 for an answer that was asked for, 2 for a command line that makes no sense.
    pub code: u8,
    /// Data: `--help`, `--version`.
    pub stdout: String,
    /// What was wrong.
    pub stderr: String,
}

/// The options of `dpmem run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// Where the JSON report goes; `-` is standard output.
    pub json: Option<PathBuf>,
    /// Whether device memory is served from the caching pool.
    pub pool: bool,
    /// The limit of each device, a size that [`dpmem_core::Size`] understands.
    pub limit: Option<String>,
    /// Python frames kept per allocation; 0 keeps none.
    pub stack_depth: u32,
    /// Codes of findings that make the exit code 1.
    pub fail_on: Vec<String>,
    /// Whether to write the summary to standard error.
    pub summary: bool,
    /// The program.
    pub target: Target,
    /// The program's own arguments.
    pub arguments: Vec<OsString>,
}

/// A program, named as for `python`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file, a folder or zip file with a `__main__.py`, or `-` for standard input.
    Script(OsString),
    /// A module, as for `python -m`.
    Module(OsString),
    /// Source text, as for `python -c`.
    Code(OsString),
}

#[derive(Debug, Parser)]
#[command(
    name = "dpmem",
    version,
    about = "Shows what every USM allocation of a dpnp or dpctl program did: where, how much, and on which Python line.",
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(RunArguments),
    Devices(DevicesOptions),
    Doctor(DoctorOptions),
    Watch(WatchOptions),
    Plan(PlanOptions),
    Lint(LintArguments),
    Rule(RuleArguments),
}

/// Find device-memory mistakes in programs before they run
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
struct LintArguments {
    /// Files and folders, and the linter's own options
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Say what a finding means, why it is bad, and what to write instead
#[derive(Debug, Args)]
struct RuleArguments {
    /// A code such as DPM301
    code: String,
}

/// Run a program and report
#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_help = AFTER_HELP)]
struct RunArguments {
    /// Write the report as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Serve device memory from the caching pool; also DPMEM_POOL=1
    #[arg(long)]
    pool: bool,

    /// Refuse allocations beyond SIZE per device: 4GB, 4GiB, 500_000, 50%; also DPMEM_LIMIT
    #[arg(long, value_name = "SIZE", value_parser = size)]
    limit: Option<String>,

    /// Python frames kept per allocation, 0 to 128; 0 keeps none
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = stack_depth)]
    stack_depth: u32,

    /// Exit with 1 when one of these findings is present; a program's own failure wins
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = rule_code)]
    fail_on: Vec<String>,

    /// Write no summary
    #[arg(long)]
    no_summary: bool,

    /// Run a module, as python -m does
    #[arg(short = 'm', value_names = ["MODULE", "ARGS"], num_args = 1.., allow_hyphen_values = true, group = "program")]
    module: Option<Vec<OsString>>,

    /// Run source text, as python -c does
    #[arg(short = 'c', value_names = ["CODE", "ARGS"], num_args = 1.., allow_hyphen_values = true, group = "program")]
    code: Option<Vec<OsString>>,

    /// Run a file, a folder or zip file with a __main__.py, or - for standard input
    #[arg(value_names = ["SCRIPT", "ARGS"], trailing_var_arg = true, group = "program")]
    script: Option<Vec<OsString>>,
}

/// Reads the arguments that follow the name of the command itself.
pub fn parse<I>(arguments: I) -> Outcome
where
    I: IntoIterator<Item = OsString>,
{
    let words = std::iter::once(OsString::from("dpmem")).chain(arguments);
    match CommandLine::try_parse_from(detached(words.collect())) {
        Ok(CommandLine { command: Command::Run(run) }) => match run.validated() {
            Some(options) => Outcome::Run(options),
            None => usage(&format!(
                "dpmem: no program was named; expected a script, -m MODULE or -c CODE\n\n\
                 Usage: {USAGE}\n\nFor more information, try '--help'.\n"
            )),
        },
        Ok(CommandLine { command: Command::Devices(options) }) => Outcome::Devices(options),
        Ok(CommandLine { command: Command::Doctor(options) }) => Outcome::Doctor(options),
        Ok(CommandLine { command: Command::Watch(options) }) => Outcome::Watch(options),
        Ok(CommandLine { command: Command::Plan(options) }) => Outcome::Plan(options),
        Ok(CommandLine { command: Command::Lint(lint) }) => Outcome::Lint(lint.arguments),
        Ok(CommandLine { command: Command::Rule(rule) }) => explained(&rule.code),
        Err(error) => answered(error),
    }
}

fn explained(code: &str) -> Outcome {
    match rules::text(code) {
        Some(text) => Outcome::Exit(Exit { code: 0, stdout: text, stderr: String::new() }),
        None => usage(&format!(
            "dpmem: expected the code of a rule, got `{code}`; there are {}\n",
            rules::codes().join(", ")
        )),
    }
}

/// A code of a rule that judges runs, whatever its case.
fn rule_code(word: &str) -> Result<String, String> {
    let code = word.trim().to_uppercase();
    let codes: Vec<_> = findings::codes().collect();
    if codes.contains(&code.as_str()) {
        return Ok(code);
    }
    Err(format!("expected codes of findings of a run, separated by commas; there are {}", codes.join(", ")))
}

/// Writes `-mMODULE` and `-cCODE` as two words: attached, clap would end the option there and read on,
/// whereas everything that follows belongs to the program.
fn detached(mut words: Vec<OsString>) -> Vec<OsString> {
    let command = CommandLine::command();
    let Some(run) = words.get(1).and_then(|name| command.find_subcommand(name)) else { return words };
    let takes_value = |word: &str| {
        let mut options = run.get_arguments();
        options
            .any(|option| word.strip_prefix("--") == option.get_long() && option.get_action().takes_values())
    };
    let mut place = 2;
    while let Some(word) =
        words.get(place).and_then(|word| word.to_str()).filter(|word| word.starts_with('-'))
    {
        if word.starts_with("--") {
            if word == "--" {
                break;
            }
            place += if takes_value(word) { 2 } else { 1 };
        } else if word.len() > 2 && (word.starts_with("-m") || word.starts_with("-c")) {
            let (option, rest) = (OsString::from(&word[..2]), OsString::from(&word[2..]));
            words.splice(place..=place, [option, rest]);
            break;
        } else {
            break;
        }
    }
    words
}

impl RunArguments {
    fn validated(self) -> Option<RunOptions> {
        let (kind, words): (fn(OsString) -> Target, _) = match (self.module, self.code, self.script) {
            (Some(words), _, _) => (Target::Module, words),
            (_, Some(words), _) => (Target::Code, words),
            (_, _, Some(words)) => (Target::Script, words),
            (None, None, None) => return None,
        };
        let mut words = words.into_iter();
        let target = kind(words.next()?);
        Some(RunOptions {
            json: self.json,
            pool: self.pool,
            limit: self.limit,
            stack_depth: self.stack_depth,
            fail_on: self.fail_on,
            summary: !self.no_summary,
            target,
            arguments: words.collect(),
        })
    }
}

fn answered(mut error: clap::Error) -> Outcome {
    if error.kind() == ErrorKind::UnknownArgument {
        // Clap suggests `-- --option`, which would name a script of that name.
        error.remove(ContextKind::Suggested);
    }
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            Outcome::Exit(Exit { code: 0, stdout: text, stderr: String::new() })
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => usage(&text),
        _ => usage(&text.replacen("error: ", "dpmem: ", 1)),
    }
}

fn usage(text: &str) -> Outcome {
    Outcome::Exit(Exit { code: 2, stdout: String::new(), stderr: text.to_owned() })
}

fn size(text: &str) -> Result<String, String> {
    dpmem_core::Size::parse(text).map(|_| text.to_owned())
}

fn stack_depth(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(depth) if depth <= MAX_STACK_DEPTH => Ok(depth),
        _ => Err(format!("expected a whole number of frames from 0 to {MAX_STACK_DEPTH}")),
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
