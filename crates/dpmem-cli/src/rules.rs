//! What a finding means: the pages of `dpmem rule` and of `docs/rules/`.
//!
//! The linter and the run know some rules both; the page of such a rule says what each of them looks for.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dpmem_core::findings;

/// Codes of all rules, ascending.
#[must_use]
pub fn codes() -> Vec<&'static str> {
    let all: BTreeSet<_> = dpmem_lint::codes().chain(findings::codes()).collect();
    all.into_iter().collect()
}

/// The page of a rule as Markdown.
#[must_use]
pub fn text(code: &str) -> Option<String> {
    let page = Page { lint: dpmem_lint::rule(code), run: findings::rule(code) };
    page.text()
}

/// What each of the two knows of a rule.
struct Page {
    lint: Option<&'static dpmem_lint::RuleDoc>,
    run: Option<&'static findings::RuleDoc>,
}

impl Page {
    fn text(&self) -> Option<String> {
        let (code, name, severity) = match (self.lint, self.run) {
            (Some(doc), _) => (doc.code, doc.name, lint_severity(doc)),
            (None, Some(doc)) => (doc.code, doc.name, run_severity(doc)),
            (None, None) => return None,
        };
        let by = match (self.lint, self.run) {
            (Some(_), Some(_)) => "`dpmem lint` and, while a program runs, by `dpmem run`",
            (Some(_), None) => "`dpmem lint`",
            (None, _) => "`dpmem run`",
        };
        let mut text = format!("# {code} {name}\n\nSeverity: {severity}. Found by {by}.\n\n");
        let mut section = |title: &str, body: &str| {
            let _ = writeln!(text, "## {title}\n{}\n", body.trim());
        };
        if let Some(doc) = self.run {
            section(if self.lint.is_some() { "In a run" } else { "What it does" }, doc.what);
        }
        if let Some(doc) = self.lint {
            section(if self.run.is_some() { "In source code" } else { "What it does" }, doc.what);
        }
        let of_lint = self.lint.map(|doc| (doc.why, doc.example, doc.instead));
        let of_run = || self.run?.explanation.as_ref().map(|page| (page.why, page.example, page.instead));
        let (why, example, instead) = of_lint.or_else(of_run)?;
        section("Why it is bad", why);
        section("Example", &format!("```python\n{}\n```", example.trim()));
        section("Use instead", &format!("```python\n{}\n```", instead.trim()));
        if let Some(doc) = self.lint {
            section("Fix safety", doc.fix);
            let _ = writeln!(text, "## References");
            for reference in doc.references {
                let _ = writeln!(text, "- {reference}");
            }
        }
        Some(text.trim_end().to_string() + "\n")
    }
}

fn lint_severity(doc: &dpmem_lint::RuleDoc) -> &'static str {
    match doc.severity {
        dpmem_lint::Severity::Error => "error",
        dpmem_lint::Severity::Warning => "warning",
        dpmem_lint::Severity::Note => "note",
    }
}

fn run_severity(doc: &findings::RuleDoc) -> &'static str {
    match doc.severity {
        findings::Severity::Error => "error",
        findings::Severity::Warning => "warning",
        findings::Severity::Note => "note",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn pages_are_as_documented() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
        for code in codes() {
            let text = text(code).expect("a page");
            let page = folder.join(format!("{code}.md"));
            if std::env::var_os("DPMEM_BLESS").is_some() {
                std::fs::write(&page, &text).expect("written");
            }
            let written = std::fs::read_to_string(&page).unwrap_or_default();
            assert_eq!(written, text, "docs/rules/{code}.md is old: run the test with DPMEM_BLESS=1");
        }
        assert_eq!(text("DPM000"), None);
    }

    #[test]
    fn pages_follow_the_outline() {
        for code in codes() {
            let text = text(code).expect("a page");
            let titles: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
            let (lint, run) = (dpmem_lint::rule(code).is_some(), findings::rule(code).is_some());
            let what: &[&str] = if lint && run { &["In a run", "In source code"] } else { &["What it does"] };
            let fix: &[&str] = if lint { &["Fix safety", "References"] } else { &[] };
            assert_eq!(titles, [what, &["Why it is bad", "Example", "Use instead"], fix].concat(), "{code}");
        }
    }

    #[test]
    fn both_name_a_shared_rule_alike() {
        for doc in dpmem_lint::codes().filter_map(dpmem_lint::rule) {
            if let Some(run) = findings::rule(doc.code) {
                assert_eq!((doc.name, lint_severity(doc)), (run.name, run_severity(run)), "{}", doc.code);
                assert_eq!(run.explanation, None, "{}: explained once, by the linter", doc.code);
            }
        }
    }
}
