//! `[tool.dpmem.lint]` in `pyproject.toml`, and codes given on the command line.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobMatcher};
use serde::Deserialize;

use crate::rules;

/// Codes that exist but that only `dpmem run` finds.
const RUN_ONLY: &[&str] = &[
    "DPM101", "DPM102", "DPM201", "DPM203", "DPM204", "DPM206", "DPM207", "DPM302", "DPM501", "DPM502",
    "DPM503",
];

/// What applies to the files below one directory.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    select: Option<Vec<String>>,
    ignore: Vec<String>,
    per_file: Vec<(Pattern, Vec<String>)>,
    exclude: Vec<Pattern>,
    root: PathBuf,
}

/// A pattern relative to the configuration's directory.
#[derive(Debug)]
struct Pattern {
    whole: GlobMatcher,
    below: GlobMatcher,
    name_only: bool,
}

impl Pattern {
    fn new(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches('/');
        let glob = |text: &str| {
            Glob::new(text).map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
        };
        Ok(Self { whole: glob(text)?, below: glob(&format!("{text}/**"))?, name_only: !text.contains('/') })
    }

    fn matches(&self, path: &Path) -> bool {
        self.whole.is_match(path)
            || self.below.is_match(path)
            || self.name_only
                && path.components().any(|part| self.whole.is_match(Path::new(part.as_os_str())))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Table {
    select: Option<Vec<String>>,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    per_file_ignores: std::collections::BTreeMap<String, Vec<String>>,
    #[serde(default)]
    exclude: Vec<String>,
}

impl Settings {
    /// The settings of the nearest `pyproject.toml` that has any, from `directory` upwards.
    ///
    /// # Errors
    /// What is wrong with the file, as a fragment.
    pub(crate) fn nearest(directory: &Path) -> Result<Self, String> {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        for parent in directory.ancestors() {
            let file = parent.join("pyproject.toml");
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            let fault = |error: String| format!("read `{}`: {error}", file.display());
            let document: toml::Table =
                text.parse().map_err(|error: toml::de::Error| fault(error.message().to_owned()))?;
            let table =
                document.get("tool").and_then(|tool| tool.get("dpmem")).and_then(|tool| tool.get("lint"));
            if let Some(table) = table {
                let table: Table = table
                    .clone()
                    .try_into()
                    .map_err(|error: toml::de::Error| fault(error.message().to_owned()))?;
                return Self::from_table(table, parent).map_err(fault);
            }
        }
        Ok(Self::default())
    }

    fn from_table(table: Table, root: &Path) -> Result<Self, String> {
        let mut per_file = Vec::new();
        for (pattern, list) in table.per_file_ignores {
            per_file.push((Pattern::new(&pattern)?, codes(&list)?));
        }
        Ok(Self {
            select: table.select.as_deref().map(codes).transpose()?,
            ignore: codes(&table.ignore)?,
            per_file,
            exclude: table.exclude.iter().map(|text| Pattern::new(text)).collect::<Result<_, _>>()?,
            root: root.to_owned(),
        })
    }

    fn relative(&self, path: &Path) -> PathBuf {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.strip_prefix(&self.root).map_or_else(|_| path.clone(), Path::to_owned)
    }

    /// True if the configuration leaves the file out.
    pub(crate) fn excludes(&self, path: &Path) -> bool {
        if self.exclude.is_empty() {
            return false;
        }
        let path = self.relative(path);
        self.exclude.iter().any(|pattern| pattern.matches(&path))
    }

    /// True if the rule applies to the file.
    pub(crate) fn selects(&self, code: &str, path: &Path, given: &Selection) -> bool {
        let named =
            |list: &[String]| list.iter().any(|prefix| prefix == "ALL" || code.starts_with(prefix.as_str()));
        let select = given.select.as_deref().or(self.select.as_deref());
        if select.is_some_and(|select| !named(select)) || named(&given.ignore) {
            return false;
        }
        // What is asked for on the command line is not taken back by the file.
        if given.select.is_none() && named(&self.ignore) {
            return false;
        }
        if self.per_file.is_empty() {
            return true;
        }
        let path = self.relative(path);
        !self.per_file.iter().any(|(pattern, codes)| pattern.matches(&path) && named(codes))
    }
}

/// `--select` and `--ignore`.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) select: Option<Vec<String>>,
    pub(crate) ignore: Vec<String>,
}

/// Codes and prefixes, checked and in upper case.
///
/// # Errors
/// Names what is no code.
pub(crate) fn codes(list: &[String]) -> Result<Vec<String>, String> {
    list.iter()
        .flat_map(|item| item.split(','))
        .map(str::trim)
        .filter(|code| !code.is_empty())
        .map(|code| {
            let upper = code.to_ascii_uppercase();
            let known = upper == "ALL"
                || rules::codes().chain(RUN_ONLY.iter().copied()).any(|known| known.starts_with(&upper));
            if known {
                Ok(upper)
            } else {
                Err(format!("`{code}` is no code: expected one such as `DPM301`, or a prefix such as `DPM3`"))
            }
        })
        .collect()
}
