//! A finding and the edits that would remove it.

use crate::parse::{Ranged, TextRange, TextSize};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program fails, or does not do what it says.
    Error,
    /// Memory or time is lost.
    Warning,
    /// Worth knowing.
    Note,
}

/// Whether a fix keeps what the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Safety {
    /// Same results; applied by `--fix`.
    Safe,
    /// May change a result, a type or an identity; applied by `--unsafe-fixes`.
    Unsafe,
}

/// Replaces a range of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) range: TextRange,
    pub(crate) text: String,
}

impl Edit {
    pub(crate) fn replace(node: &impl Ranged, text: impl Into<String>) -> Self {
        Self { range: node.range(), text: text.into() }
    }

    pub(crate) fn insert(at: TextSize, text: impl Into<String>) -> Self {
        Self { range: TextRange::empty(at), text: text.into() }
    }
}

/// Edits that go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fix {
    pub(crate) safety: Safety,
    pub(crate) edits: Vec<Edit>,
}

/// One fault at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) code: &'static str,
    pub(crate) name: &'static str,
    pub(crate) severity: Severity,
    pub(crate) range: TextRange,
    pub(crate) message: String,
    pub(crate) advice: String,
    pub(crate) fix: Option<Fix>,
}
