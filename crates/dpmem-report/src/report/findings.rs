//! Findings as the report carries them. Owns their form; what is a finding is decided elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing that is wrong with the program's use of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Code, such as `DPM301`.
    pub code: String,
    /// Name, such as `alloc-in-loop`.
    pub name: String,
    /// How bad it is.
    pub severity: Severity,
    /// File of the user's own line; `None` where no line is to blame.
    pub file: Option<String>,
    /// The user's own line, from 1.
    pub line: Option<u32>,
    /// Filter string of the device concerned.
    pub device: Option<String>,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// The numbers that it rests on.
    pub evidence: Map<String, Value>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The program fails or is about to.
    Error,
    /// It costs memory or time.
    Warning,
    /// Worth knowing.
    Note,
}
