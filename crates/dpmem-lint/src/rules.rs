//! The rules: one file each, with its documentation.
//!
//! A rule reads the [`Model`] and reports; it changes nothing and knows no other rule. Silence is the answer to
//! everything that is not evident.

mod dpm103;
mod dpm104;
mod dpm202;
mod dpm205;
mod dpm208;
mod dpm301;
mod dpm303;
mod dpm304;
mod dpm305;
mod dpm306;
mod dpm401;
mod dpm402;
mod dpm403;
mod steps;

use crate::finding::{Finding, Fix, Severity};
use crate::parse::TextRange;
use crate::semantic::Model;

/// Runs of one line below which a loop is no matter; the tracker uses the same number.
pub(crate) const LEAST_REPEATS: u64 = 20;

/// What a rule means, in the outline that every rule follows.
#[derive(Debug)]
pub struct RuleDoc {
    /// Such as `DPM301`.
    pub code: &'static str,
    /// Such as `alloc-in-loop`.
    pub name: &'static str,
    /// How bad a finding is.
    pub severity: Severity,
    /// What the rule looks for, and what it leaves alone.
    pub what: &'static str,
    /// Why that is bad.
    pub why: &'static str,
    /// A program with the fault.
    pub example: &'static str,
    /// The program to write instead.
    pub instead: &'static str,
    /// What the fix changes, and how safe it is.
    pub fix: &'static str,
    /// Where to read more.
    pub references: &'static [&'static str],
}

/// A rule: its documentation and its check.
pub(crate) struct Rule {
    pub(crate) doc: &'static RuleDoc,
    pub(crate) check: fn(&mut Checker<'_, '_>),
}

/// Every rule, by code.
pub(crate) static RULES: &[Rule] = &[
    Rule { doc: &dpm103::DOC, check: dpm103::check },
    Rule { doc: &dpm104::DOC, check: dpm104::check },
    Rule { doc: &dpm202::DOC, check: dpm202::check },
    Rule { doc: &dpm205::DOC, check: dpm205::check },
    Rule { doc: &dpm208::DOC, check: dpm208::check },
    Rule { doc: &dpm301::DOC, check: dpm301::check },
    Rule { doc: &dpm303::DOC, check: dpm303::check },
    Rule { doc: &dpm304::DOC, check: dpm304::check },
    Rule { doc: &dpm305::DOC, check: dpm305::check },
    Rule { doc: &dpm306::DOC, check: dpm306::check },
    Rule { doc: &dpm401::DOC, check: dpm401::check },
    Rule { doc: &dpm402::DOC, check: dpm402::check },
    Rule { doc: &dpm403::DOC, check: dpm403::check },
];

/// A rule at work on one module.
pub(crate) struct Checker<'m, 'a> {
    pub(crate) model: &'m Model<'a>,
    pub(crate) doc: &'static RuleDoc,
    pub(crate) findings: Vec<Finding>,
}

impl Checker<'_, '_> {
    pub(crate) fn report(
        &mut self,
        range: TextRange,
        message: impl Into<String>,
        advice: impl Into<String>,
        fix: Option<Fix>,
    ) {
        self.findings.push(Finding {
            code: self.doc.code,
            name: self.doc.name,
            severity: self.doc.severity,
            range,
            message: message.into(),
            advice: advice.into(),
            fix,
        });
    }
}

/// Every finding of the rules that `selected` accepts, in source order.
pub(crate) fn check(model: &Model<'_>, selected: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES.iter().filter(|rule| selected(rule.doc.code)) {
        let mut checker = Checker { model, doc: rule.doc, findings: Vec::new() };
        (rule.check)(&mut checker);
        findings.append(&mut checker.findings);
    }
    findings.sort_by_key(|finding| (finding.range.start(), finding.code, finding.range.end()));
    findings.dedup_by(|one, two| one.code == two.code && one.range == two.range);
    findings
}

/// The documentation of a rule that `lint` knows.
#[must_use]
pub fn rule(code: &str) -> Option<&'static RuleDoc> {
    RULES.iter().map(|rule| rule.doc).find(|doc| doc.code.eq_ignore_ascii_case(code))
}

/// Codes of all rules, ascending.
pub fn codes() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.doc.code)
}
