//! What can be said about a missing device from files and variables alone, one file a subject.
//!
//! A check looks, never loads a driver and never waits. What it advises is a command or a variable that can be typed as
//! it stands.

mod container;
mod drm;
mod environment;
mod level_zero;
mod opencl;
mod search;

use std::collections::BTreeMap;

use crate::{Gpu, Root, gpus};

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, but something is missing or has no effect.
    Warning,
    /// Keeps a device away.
    Failed,
    /// Says nothing about this machine.
    Skipped,
}

impl Status {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// A check and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its stable name.
    pub id: &'static str,
    /// What came of it.
    pub status: Status,
    /// What was seen.
    pub message: String,
    /// What to do; empty where there is nothing to do.
    pub advice: String,
}

/// Who asks: the user, for permissions of device nodes.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Effective user.
    pub uid: u32,
    /// Effective and supplementary groups.
    pub groups: Vec<u32>,
}

/// What the checks look at.
pub struct Machine {
    root: Root,
    variables: BTreeMap<String, String>,
    prefixes: Vec<String>,
    identity: Identity,
    gpus: Vec<Gpu>,
}

type Checker = fn(&Machine) -> (Status, String, String);

/// Every check of this crate, by name, in the order in which they are shown.
pub const CHECKS: &[(&str, Checker)] = &[
    ("env.selector", environment::selector),
    ("env.ignored-variables", environment::ignored_variables),
    ("opencl.icd", opencl::icd),
    ("opencl.cpu-runtime", opencl::cpu_runtime),
    ("levelzero.loader", level_zero::loader),
    ("levelzero.driver", level_zero::driver),
    ("drm.permission", drm::permission),
    ("container.devices", container::devices),
    ("sysman.privilege", level_zero::privilege),
];

impl Machine {
    /// A machine: where its files lie, the program's environment, the folders whose `lib` and `etc` a Python
    /// installation uses, and who asks.
    #[must_use]
    pub fn new(
        root: Root,
        variables: BTreeMap<String, String>,
        prefixes: Vec<String>,
        identity: Identity,
    ) -> Machine {
        let gpus = gpus(&root);
        Machine { root, variables, prefixes, identity, gpus }
    }

    /// Runs the check of that name; `None` if there is none.
    #[must_use]
    pub fn check(&self, id: &str) -> Option<Check> {
        let &(id, check) = CHECKS.iter().find(|(known, _)| *known == id)?;
        let (status, message, advice) = check(self);
        Some(Check { id, status, message, advice })
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn intel_gpus(&self) -> impl Iterator<Item = &Gpu> {
        self.gpus.iter().filter(|gpu| gpu.vendor == crate::pci::INTEL)
    }

    /// Whether Windows lends its GPU.
    fn is_wsl(&self) -> bool {
        self.root.exists("dev/dxg")
    }
}

fn ok(message: impl Into<String>) -> (Status, String, String) {
    (Status::Ok, message.into(), String::new())
}

fn skipped(message: impl Into<String>) -> (Status, String, String) {
    (Status::Skipped, message.into(), String::new())
}

/// A value as a shell takes it.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_string();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}
