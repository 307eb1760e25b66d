//! `dpmem lint`: arguments in, findings and an exit code out.
//!
//! The only place that decides exit codes: 0 nothing found, 1 findings, 2 something could not be done.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser as _;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::config::{self, Selection, Settings};
use crate::finding::Safety;
use crate::lint::{self, Outcome, Task};
use crate::output::{self, Format};
use crate::{fixes, walk};

/// Stack of a worker; deeper texts get one of their own.
const STACK_BYTES: usize = 16 << 20;

/// Find device-memory mistakes in programs that use dpnp or dpctl, before they run.
#[derive(Debug, clap::Parser)]
#[command(name = "dpmem lint", no_binary_name = true, disable_help_subcommand = true)]
struct Arguments {
    /// Files and directories; `-` is standard input
    #[arg(required = true, value_name = "PATHS")]
    paths: Vec<PathBuf>,
    /// Only these codes or prefixes, separated by commas
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    select: Option<Vec<String>>,
    /// Not these codes or prefixes, separated by commas
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Apply fixes that keep what the program does
    #[arg(long)]
    fix: bool,
    /// Apply the other fixes too
    #[arg(long)]
    unsafe_fixes: bool,
    /// Show what the fixes would change, and change nothing
    #[arg(long)]
    diff: bool,
    /// How to print findings
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    output_format: Format,
    /// Exit 0 even if there are findings
    #[arg(long)]
    exit_zero: bool,
    /// Name for standard input in findings and settings
    #[arg(long, value_name = "FILE", default_value = "<stdin>")]
    stdin_filename: String,
}

/// The streams of one run.
struct Streams<'s> {
    stdin: &'s mut (dyn Read + Send),
    stdout: &'s mut (dyn Write + Send),
    stderr: &'s mut (dyn Write + Send),
}

/// Runs `dpmem lint` with the arguments behind `lint`, and returns the exit code.
///
/// Colours the text output if the process's own standard output is a terminal and `NO_COLOR` is not set.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    stdin: &mut (dyn Read + Send),
    stdout: &mut (dyn Write + Send),
    stderr: &mut (dyn Write + Send),
) -> u8 {
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(error) => {
            let text = error.render();
            // Help goes to standard output, a mistake to standard error.
            let (stream, code): (&mut dyn Write, u8) =
                if error.use_stderr() { (stderr, 2) } else { (stdout, 0) };
            let _ = write!(stream, "{text}");
            return code;
        }
    };
    let mut streams = Streams { stdin, stdout, stderr };
    match checked(&arguments, &mut streams) {
        Ok(code) => code,
        // The reader has gone, and knows why.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let _ = writeln!(streams.stderr, "error: failed to write: {error}");
            2
        }
    }
}

/// One input with its settings.
struct Input {
    name: String,
    path: PathBuf,
    settings: Arc<Settings>,
    /// Content that is read already.
    content: Option<Vec<u8>>,
}

fn checked(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<u8> {
    let selection = match selection(arguments) {
        Ok(selection) => selection,
        Err(error) => {
            writeln!(streams.stderr, "error: failed to select: {error}")?;
            return Ok(2);
        }
    };
    let (inputs, mut errors) = inputs(arguments, streams.stdin);
    let fix = match (arguments.unsafe_fixes, arguments.fix || arguments.diff) {
        (true, _) => Some(Safety::Unsafe),
        (false, true) => Some(Safety::Safe),
        (false, false) => None,
    };
    let outcomes = outcomes(&inputs, &selection, fix);
    let (mut findings, mut fixed) = (Vec::new(), 0);
    let mut patches = String::new();
    for (input, outcome) in inputs.iter().zip(outcomes) {
        errors.extend(outcome.error);
        let is_stdin = input.content.is_some();
        if let Some((before, after)) = &outcome.change {
            if arguments.diff {
                patches.push_str(&fixes::patch(&input.name, before, after));
            } else if !is_stdin && let Err(error) = std::fs::write(&input.path, after) {
                errors.push(format!("write `{}`: {error}", input.name));
            }
        }
        // A fixed text from standard input is the output.
        if is_stdin && fix.is_some() && !arguments.diff {
            let content = input.content.as_deref().unwrap_or_default();
            let text = outcome.change.as_ref().map_or(content, |(_, after)| after.as_bytes());
            streams.stdout.write_all(text)?;
        }
        fixed += outcome.fixed;
        findings.extend(outcome.findings);
    }
    let to_stderr = inputs.iter().any(|input| input.content.is_some()) && fix.is_some() && !arguments.diff;
    if arguments.diff {
        streams.stdout.write_all(patches.as_bytes())?;
    } else {
        let colour =
            io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let out: &mut dyn Write = if to_stderr { streams.stderr } else { streams.stdout };
        output::write(arguments.output_format, &findings, colour && !to_stderr, out)?;
    }
    streams.stdout.flush()?;
    for error in &errors {
        writeln!(streams.stderr, "error: failed to {error}")?;
    }
    let any = !findings.is_empty() || arguments.diff && !patches.is_empty();
    if arguments.output_format == Format::Text {
        summary(&findings, fixed, arguments, inputs.len(), streams.stderr)?;
    }
    Ok(match (errors.is_empty(), any && !arguments.exit_zero) {
        (false, _) => 2,
        (true, true) => 1,
        (true, false) => 0,
    })
}

fn selection(arguments: &Arguments) -> Result<Selection, String> {
    Ok(Selection {
        select: arguments.select.as_deref().map(config::codes).transpose()?,
        ignore: config::codes(&arguments.ignore)?,
    })
}

/// Everything to check, with the settings that apply to it.
fn inputs(arguments: &Arguments, stdin: &mut dyn Read) -> (Vec<Input>, Vec<String>) {
    let mut errors = Vec::new();
    let mut inputs = Vec::new();
    let mut known: FxHashMap<PathBuf, Option<Arc<Settings>>> = FxHashMap::default();
    let mut settings = |path: &Path, errors: &mut Vec<String>| {
        let directory = path.parent().map(Path::to_owned).unwrap_or_default();
        known
            .entry(directory.clone())
            .or_insert_with(|| match Settings::nearest(&directory) {
                Ok(settings) => Some(Arc::new(settings)),
                Err(error) => {
                    if !errors.contains(&error) {
                        errors.push(error);
                    }
                    None
                }
            })
            .clone()
    };
    let (named, piped): (Vec<PathBuf>, Vec<PathBuf>) =
        arguments.paths.iter().cloned().partition(|path| path.as_os_str() != "-");
    if !piped.is_empty() {
        let path = PathBuf::from(&arguments.stdin_filename);
        match lint::read(&path, stdin) {
            Ok(content) => {
                if let Some(settings) = settings(&path, &mut errors) {
                    inputs.push(Input {
                        name: arguments.stdin_filename.clone(),
                        path,
                        settings,
                        content: Some(content),
                    });
                }
            }
            Err(error) => errors.push(format!("read standard input: {error}")),
        }
    }
    let found = walk::find(&named);
    errors.extend(found.errors);
    for path in found.files {
        let Some(settings) = settings(&path, &mut errors) else { continue };
        let explicit = named.contains(&path);
        if explicit || !settings.excludes(&path) {
            inputs.push(Input { name: path.display().to_string(), path, settings, content: None });
        }
    }
    (inputs, errors)
}

fn outcomes(inputs: &[Input], selection: &Selection, fix: Option<Safety>) -> Vec<Outcome> {
    let work = || inputs.par_iter().map(|input| outcome(input, selection, fix)).collect();
    match rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

fn outcome(input: &Input, selection: &Selection, fix: Option<Safety>) -> Outcome {
    let task = Task { settings: &input.settings, selection, fix };
    let content = match &input.content {
        Some(content) => Ok(content.clone()),
        None => std::fs::File::open(&input.path)
            .map_err(|error| error.to_string())
            .and_then(|file| lint::read(&input.path, file)),
    };
    match content {
        Ok(content) => lint::check(&input.name, &input.path, content, &task),
        Err(error) => {
            Outcome { error: Some(format!("read `{}`: {error}", input.name)), ..Outcome::default() }
        }
    }
}

fn summary(
    findings: &[lint::Located],
    fixed: usize,
    arguments: &Arguments,
    files: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let plural = |count: usize, what: &str| {
        if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
    };
    if fixed > 0 {
        let verb = if arguments.diff { "would be fixed" } else { "fixed" };
        writeln!(out, "{} {verb}", plural(fixed, "finding"))?;
    }
    if findings.is_empty() {
        return Ok(());
    }
    let count = |safety: Safety| {
        findings.iter().filter(|finding| finding.fix.as_ref().is_some_and(|fix| fix.safety == safety)).count()
    };
    write!(out, "{} in {}", plural(findings.len(), "finding"), plural(files, "file"))?;
    match (count(Safety::Safe), count(Safety::Unsafe)) {
        (0, 0) => writeln!(out),
        (safe, 0) => writeln!(out, ", {safe} fixable with `--fix`"),
        (0, unsafe_) => writeln!(out, ", {unsafe_} fixable with `--unsafe-fixes`"),
        (safe, unsafe_) => {
            writeln!(out, ", {safe} fixable with `--fix`, {unsafe_} more with `--unsafe-fixes`")
        }
    }
}
