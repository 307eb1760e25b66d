//! The four ways to write findings down.

mod github;
mod json;
mod sarif;
mod text;

use std::io::{self, Write};

use crate::lint::Located;

/// `--output-format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Github,
    Sarif,
}

/// Writes every finding.
pub(crate) fn write(
    format: Format,
    findings: &[Located],
    colour: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => text::write(findings, colour, out),
        Format::Json => json::write(findings, out),
        Format::Github => github::write(findings, out),
        Format::Sarif => sarif::write(findings, out),
    }
}
