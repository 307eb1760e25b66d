//! One file from bytes to findings, and from findings to its fixed text.

use std::io::Read;
use std::path::Path;

use crate::config::{Selection, Settings};
use crate::finding::{Edit, Finding, Safety, Severity};
use crate::fixes;
use crate::notebook::Notebook;
use crate::parse;
use crate::rules;
use crate::semantic::Model;
use crate::source::{Position, Source};
use crate::suppress::Suppressions;

/// Python larger than this is refused, so that memory stays bounded.
pub const FILE_LIMIT: u64 = 8 << 20;
/// The same for a program that rules apply to, whose every expression is remembered.
const PROGRAM_LIMIT: usize = 4 << 20;
/// Notebooks carry pictures; what counts against [`FILE_LIMIT`] is their code.
const NOTEBOOK_LIMIT: u64 = 64 << 20;

/// Stack for a text at the nesting limit.
const DEEP_STACK_BYTES: usize = 1 << 30;

/// Fixes can make room for others; more rounds than this are a fault of a rule.
const FIX_ROUNDS: usize = 10;

/// A finding with everything that an output needs.
#[derive(Debug, Clone)]
pub struct Located {
    /// Such as `DPM301`.
    pub code: &'static str,
    /// Such as `alloc-in-loop`.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// File as given or found.
    pub file: String,
    /// Cell of a notebook, from 1; lines are the cell's own.
    pub cell: Option<usize>,
    /// First character.
    pub start: Position,
    /// Behind the last character.
    pub end: Position,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub advice: String,
    /// Edits that remove it.
    pub fix: Option<LocatedFix>,
    /// The first line of the range, for people.
    pub excerpt: String,
}

/// A fix with positions.
#[derive(Debug, Clone)]
pub struct LocatedFix {
    /// Whether it keeps what the program does.
    pub safety: Safety,
    /// Replacements: start, end, text.
    pub edits: Vec<(Position, Position, String)>,
}

/// What became of one file.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) findings: Vec<Located>,
    /// Why the file could not be checked or fixed.
    pub(crate) error: Option<String>,
    /// Text before and after fixes, if they changed it.
    pub(crate) change: Option<(String, String)>,
    /// Findings that fixes removed.
    pub(crate) fixed: usize,
}

impl Outcome {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// What to look for, and what to do about it.
#[derive(Debug)]
pub(crate) struct Task<'t> {
    pub(crate) settings: &'t Settings,
    pub(crate) selection: &'t Selection,
    /// Apply fixes up to this safety.
    pub(crate) fix: Option<Safety>,
}

/// Reads a file, or as much as the limit of its kind allows.
///
/// # Errors
/// A fragment that says why not.
pub(crate) fn read(path: &Path, reader: impl Read) -> Result<Vec<u8>, String> {
    let limit = if is_notebook(path) { NOTEBOOK_LIMIT } else { FILE_LIMIT };
    let mut bytes = Vec::new();
    reader.take(limit + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit {
        return Err(format!("expected at most {limit} bytes, found more"));
    }
    Ok(bytes)
}

fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ipynb")
}

/// Checks the content of a file.
pub(crate) fn check(name: &str, path: &Path, bytes: Vec<u8>, task: &Task<'_>) -> Outcome {
    let (text, is_utf8) = match decoded(bytes) {
        Ok(decoded) => decoded,
        Err(error) => return Outcome::failed(format!("read `{name}`: {error}")),
    };
    if is_notebook(path) {
        return notebook(name, path, &text, task);
    }
    let mut outcome = Outcome::default();
    let mut current = text.clone();
    for round in 0.. {
        let source = Source::new(current.clone());
        let findings = match findings(&source, path, task) {
            Ok(findings) => findings,
            Err(error) if round == 0 => {
                return Outcome::failed(format!("{error} in `{}`", place(name, &source, &error)));
            }
            Err(_) => {
                return Outcome::failed(format!(
                    "fix `{name}`: the result does not parse, nothing was changed"
                ));
            }
        };
        let edits = match task.fix {
            Some(safety) if is_utf8 && round < FIX_ROUNDS => fixes::chosen(&findings, safety),
            _ => Vec::new(),
        };
        if edits.is_empty() {
            outcome.findings = findings.iter().map(|finding| located(name, &source, finding, None)).collect();
            break;
        }
        let before = findings.len();
        current = fixes::applied(source.text(), &edits);
        outcome.fixed += before;
    }
    outcome.fixed = outcome.fixed.saturating_sub(outcome.findings.len());
    if current != text {
        outcome.change = Some((text, current));
    }
    outcome
}

fn place(name: &str, source: &Source, error: &ParseFault) -> String {
    let position = source.position((error.0.offset.min(source.text().len()) as u32).into());
    format!("{name}:{}:{}", position.line, position.column)
}

struct ParseFault(parse::ParseError);

impl std::fmt::Display for ParseFault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

/// Texts that nest deeper than a worker's stack allows get a stack of their own.
fn findings(source: &Source, path: &Path, task: &Task<'_>) -> Result<Vec<Finding>, ParseFault> {
    if !parse::is_deep(source.text()) {
        return shallow_findings(source, path, task);
    }
    let refused = || {
        ParseFault(parse::ParseError { offset: 0, message: "parse: no stack for deep nesting".to_owned() })
    };
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(DEEP_STACK_BYTES)
            .spawn_scoped(scope, || shallow_findings(source, path, task))
            .map_err(|_| refused())?
            .join()
            .unwrap_or_else(|_| Err(refused()))
    })
}

fn shallow_findings(source: &Source, path: &Path, task: &Task<'_>) -> Result<Vec<Finding>, ParseFault> {
    let parsed = parse::parse(source.text()).map_err(ParseFault)?;
    if !is_of_interest(source.text()) {
        return Ok(Vec::new());
    }
    if source.text().len() > PROGRAM_LIMIT {
        let message = format!("check: expected at most {PROGRAM_LIMIT} bytes, found {}", source.text().len());
        return Err(ParseFault(parse::ParseError { offset: 0, message }));
    }
    let model = Model::of(source, parsed.suite());
    let mut findings = rules::check(&model, &|code| task.settings.selects(code, path, task.selection));
    if !findings.is_empty() {
        let suppressions = Suppressions::of(source, &parsed);
        findings.retain(|finding| !suppressions.silence(source, finding));
    }
    Ok(findings)
}

/// Every rule needs one of these words as evidence.
fn is_of_interest(text: &str) -> bool {
    ["dpnp", "dpctl", "SYCL_", "ONEAPI_DEVICE_SELECTOR"].iter().any(|word| text.contains(word))
}

fn located(name: &str, source: &Source, finding: &Finding, notebook: Option<&Notebook>) -> Located {
    let at = |offset| {
        let position = source.position(offset);
        match notebook {
            Some(notebook) => {
                let (cell, position) = notebook.locate(position);
                (Some(cell), position)
            }
            None => (None, position),
        }
    };
    let (cell, start) = at(finding.range.start());
    let (_, end) = at(finding.range.end());
    let line = source.line(finding.range.start());
    Located {
        code: finding.code,
        name: finding.name,
        severity: finding.severity,
        file: name.to_owned(),
        cell,
        start,
        end,
        message: finding.message.clone(),
        advice: finding.advice.clone(),
        fix: finding.fix.as_ref().map(|fix| LocatedFix {
            safety: fix.safety,
            edits: fix
                .edits
                .iter()
                .map(|edit| (at(edit.range.start()).1, at(edit.range.end()).1, edit.text.clone()))
                .collect(),
        }),
        excerpt: source.line_text(line).to_owned(),
    }
}

fn notebook(name: &str, path: &Path, text: &str, task: &Task<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut current = text.to_owned();
    for round in 0.. {
        let notebook = match Notebook::parse(&current) {
            Ok(notebook) => notebook,
            Err(error) => return Outcome::failed(format!("{error} in `{name}`")),
        };
        if notebook.text().len() as u64 > FILE_LIMIT {
            return Outcome::failed(format!(
                "read `{name}`: expected at most {FILE_LIMIT} bytes of code, found more"
            ));
        }
        let source = Source::new(notebook.masked().to_owned());
        let findings = match findings(&source, path, task) {
            Ok(findings) => findings,
            Err(error) if round == 0 => {
                let position = source.position((error.0.offset.min(source.text().len()) as u32).into());
                let (cell, position) = notebook.locate(position);
                return Outcome::failed(format!(
                    "{error} in `{name}:cell {cell}:{}:{}`",
                    position.line, position.column
                ));
            }
            Err(_) => {
                return Outcome::failed(format!(
                    "fix `{name}`: the result does not parse, nothing was changed"
                ));
            }
        };
        let within = |edit: &&Edit| {
            notebook.is_within_cell(edit.range.start().to_usize(), edit.range.end().to_usize())
        };
        let whole: Vec<Finding> = findings
            .iter()
            .filter(|finding| {
                finding.fix.as_ref().is_some_and(|fix| fix.edits.iter().all(|edit| within(&edit)))
            })
            .cloned()
            .collect();
        let edits = match task.fix {
            Some(safety) if round < FIX_ROUNDS => fixes::chosen(&whole, safety),
            _ => Vec::new(),
        };
        let edits: Vec<(usize, usize, &str)> = edits
            .iter()
            .map(|edit| (edit.range.start().to_usize(), edit.range.end().to_usize(), edit.text.as_str()))
            .collect();
        let next = if edits.is_empty() { None } else { notebook.rewritten(&current, &edits) };
        match next {
            Some(next) => {
                outcome.fixed += findings.len();
                current = next;
            }
            None => {
                if !edits.is_empty() {
                    outcome.error =
                        Some(format!("fix `{name}`: its formatting cannot be kept, nothing was changed"));
                }
                let real = Source::new(notebook.text().to_owned());
                outcome.findings = findings
                    .iter()
                    .map(|finding| {
                        let mut located = located(name, &source, finding, Some(&notebook));
                        let line = real.line(finding.range.start());
                        located.excerpt = real.line_text(line).to_owned();
                        located
                    })
                    .collect();
                break;
            }
        }
    }
    outcome.fixed = outcome.fixed.saturating_sub(outcome.findings.len());
    if current != text {
        outcome.change = Some((text.to_owned(), current));
    }
    outcome
}

/// Text of the bytes, and whether they are UTF-8 (else an encoding that the file declares).
fn decoded(bytes: Vec<u8>) -> Result<(String, bool), String> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, true)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            match declared(&bytes) {
                Some(encoding) => {
                    let (text, _, faulty) = encoding.decode(&bytes);
                    if faulty {
                        return Err(format!("its bytes are not the {} it declares", encoding.name()));
                    }
                    Ok((text.into_owned(), false))
                }
                None => Err(format!("byte {at} is not UTF-8, and no other encoding is declared")),
            }
        }
    }
}

/// The encoding in a `coding:` comment of the first two lines, if it is not UTF-8.
fn declared(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    for line in bytes.split(|byte| *byte == b'\n').take(2) {
        let line = String::from_utf8_lossy(line);
        if !line.trim_start().starts_with('#') {
            continue;
        }
        if let Some((_, rest)) = line.split_once("coding") {
            let label = rest.strip_prefix([':', '=']).unwrap_or("").trim_start();
            let label: String = label
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
                .collect();
            if label.is_empty() {
                continue;
            }
            let label = label.to_ascii_lowercase().replace('_', "-");
            let label = match label.as_str() {
                "latin-1" | "latin1" | "iso-latin-1" | "l1" => "iso-8859-1",
                label if label.starts_with("latin-1-") || label.starts_with("iso-8859-1-") => "iso-8859-1",
                other => other,
            };
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes())?;
            return (encoding != encoding_rs::UTF_8).then_some(encoding);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_encodings_are_read() {
        let (text, utf8) = decoded(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n".to_vec()).expect("decoded");
        assert!(text.contains('é') && !utf8);
        assert!(decoded(b"x = '\xe9'\n".to_vec()).is_err());
        assert!(decoded(b"# coding: utf-8\nx = '\xe9'\n".to_vec()).is_err());
    }
}
