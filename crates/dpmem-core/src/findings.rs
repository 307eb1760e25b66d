//! Findings: what the recording of a run says is wrong with the program, on which line, and what to do about it.
//!
//! One rule is one file below, with its documentation, its thresholds and its tests. A rule reads [`Facts`] and knows
//! no other rule. Rules judge by what repeats itself at one line and never by a single event, and where the facts allow
//! an innocent reading they are silent: a finding on a good program costs the trust in all others.
//!
//! Runs once, when a report is taken; nothing here is on the hook path.

mod activity;
mod chunked;
mod dpm101;
mod dpm102;
mod dpm103;
mod dpm104;
mod dpm201;
mod dpm202;
mod dpm203;
mod dpm204;
mod dpm205;
mod dpm206;
mod dpm207;
mod dpm208;
mod dpm301;
mod dpm302;
mod dpm303;
mod dpm304;
mod dpm306;
mod dpm401;
mod dpm403;
mod dpm501;
mod dpm502;
mod dpm503;
mod facts;
mod held;
mod operation;
mod place;
mod surroundings;
#[cfg(all(test, not(loom)))]
mod testing;

pub use facts::{
    BlockState, CacheUse, Facts, FailedRequest, HeldBlock, HolderKind, HolderRecord, Operand, Promotion, Room,
};
pub use place::Place;
pub use surroundings::{Cause, Failure, QueuedArray, SeenDevice, Surroundings};

use crate::kind::DeviceId;
use crate::stack::Frame;

/// Runs of one line below which a loop is no matter; the linter uses the same number.
const LEAST_REPEATS: u64 = 20;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program fails or is about to.
    Error,
    /// It costs memory or time.
    Warning,
    /// Worth knowing.
    Note,
}

/// A number or a text that a finding rests on.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count, or bytes where the key ends in `_bytes`.
    Whole(u64),
    /// Seconds where the key ends in `_s`, else a ratio.
    Real(f64),
    /// A name or a path.
    Text(String),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static RuleDoc,
    /// The user's own line; `None` where no line is to blame.
    pub place: Option<Place>,
    /// The device concerned; [`DeviceId::NONE`] where none is.
    pub device: DeviceId,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// What it rests on.
    pub evidence: Vec<(&'static str, Value)>,
}

/// What a rule means, in the outline that every rule follows.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleDoc {
    /// Such as `DPM301`.
    pub code: &'static str,
    /// Such as `alloc-in-loop`.
    pub name: &'static str,
    /// How bad a finding is.
    pub severity: Severity,
    /// What it looks for in a run, from which thresholds on, and what it leaves alone.
    pub what: &'static str,
    /// Why that is bad and what to write instead; `None` where the linter knows the rule too and its page says so.
    pub explanation: Option<Explanation>,
}

/// The part of a rule's page that does not depend on how it is found.
#[derive(Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Why it is bad.
    pub why: &'static str,
    /// A program with the fault.
    pub example: &'static str,
    /// The program to write instead.
    pub instead: &'static str,
}

/// A rule: its documentation and its check.
struct Rule {
    doc: &'static RuleDoc,
    check: fn(&Facts<'_>) -> Vec<Finding>,
}

/// Every rule, by code.
static RULES: &[Rule] = &[
    Rule { doc: &dpm101::DOC, check: dpm101::check },
    Rule { doc: &dpm102::DOC, check: dpm102::check },
    Rule { doc: &dpm103::DOC, check: dpm103::check },
    Rule { doc: &dpm104::DOC, check: dpm104::check },
    Rule { doc: &dpm201::DOC, check: dpm201::check },
    Rule { doc: &dpm202::DOC, check: dpm202::check },
    Rule { doc: &dpm203::DOC, check: dpm203::check },
    Rule { doc: &dpm204::DOC, check: dpm204::check },
    Rule { doc: &dpm205::DOC, check: dpm205::check },
    Rule { doc: &dpm206::DOC, check: dpm206::check },
    Rule { doc: &dpm207::DOC, check: dpm207::check },
    Rule { doc: &dpm208::DOC, check: dpm208::check },
    Rule { doc: &dpm301::DOC, check: dpm301::check },
    Rule { doc: &dpm302::DOC, check: dpm302::check },
    Rule { doc: &dpm303::DOC, check: dpm303::check },
    Rule { doc: &dpm304::DOC, check: dpm304::check },
    Rule { doc: &dpm306::DOC, check: dpm306::check },
    Rule { doc: &dpm401::DOC, check: dpm401::check },
    Rule { doc: &dpm403::DOC, check: dpm403::check },
    Rule { doc: &dpm501::DOC, check: dpm501::check },
    Rule { doc: &dpm502::DOC, check: dpm502::check },
    Rule { doc: &dpm503::DOC, check: dpm503::check },
];

/// Everything that is wrong: the worst first, then by code; of one code what matters most first, as the rule has it.
#[must_use]
pub fn judge(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| (rule.check)(facts)).collect();
    findings.sort_by_key(|finding| (finding.rule.severity, finding.rule.code));
    findings
}

/// Whether the operation that allocates at these frames should be looked at while it is under way: it casts an operand,
/// or it is a function whose name the frames don't tell.
#[must_use]
pub fn wants_a_look(frames: &[Frame]) -> bool {
    operation::purpose(frames) == operation::Purpose::Cast || operation::is_unnamed_call(frames)
}

/// The documentation of a rule that a run knows.
#[must_use]
pub fn rule(code: &str) -> Option<&'static RuleDoc> {
    RULES.iter().map(|rule| rule.doc).find(|doc| doc.code.eq_ignore_ascii_case(code))
}

/// Codes of all rules, ascending.
pub fn codes() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.doc.code)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_are_documented() {
        let codes: Vec<_> = codes().collect();
        assert!(codes.is_sorted());
        for doc in RULES.iter().map(|rule| rule.doc) {
            let explained = doc.explanation.iter().flat_map(|page| [page.why, page.example, page.instead]);
            assert!(explained.chain([doc.what]).all(|text| text.trim().len() > 20), "{}", doc.code);
        }
    }

    #[test]
    fn an_empty_recording_has_no_findings() {
        let snapshot = crate::Snapshot::default();
        assert_eq!(judge(&Facts::of(&snapshot)), []);
    }
}
