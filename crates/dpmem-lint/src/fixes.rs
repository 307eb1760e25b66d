//! Edits: which go together, what the text is after them, and the difference as a patch.

use crate::finding::{Edit, Finding, Safety};
use crate::parse::TextRange;
use crate::semantic::Model;
use crate::source::Source;

/// The lines that hold exactly this statement, line ending included; `None` if something shares them.
///
/// A comment behind the statement belongs to it.
pub(crate) fn whole_lines(source: &Source, statement: TextRange) -> Option<TextRange> {
    source.indentation(statement.start())?;
    let last = source.line(statement.end());
    let end = if last < source.line_count() { source.line_start(last + 1) } else { source.text().len() };
    let rest = source.text()[statement.end().to_usize()..end].trim();
    let ends_line = source.text()[..end].ends_with('\n');
    let start = source.line_start(source.line(statement.start()));
    (ends_line && (rest.is_empty() || rest.starts_with('#')))
        .then(|| TextRange::new((start as u32).into(), (end as u32).into()))
}

/// `base`, or `base_2`, … that the module does not use.
pub(crate) fn fresh_name(model: &Model<'_>, base: &str) -> Option<String> {
    let used = |name: &str| {
        !model.index.occurrences(name).is_empty()
            || model.index.functions.iter().any(|function| {
                function.bound.contains(name)
                    || function.globals.contains(name)
                    || function.nonlocals.contains(name)
            })
    };
    (1..10)
        .map(|number| if number == 1 { base.to_owned() } else { format!("{base}_{number}") })
        .find(|name| !used(name))
}

/// The edits of all fixes up to `safety`, those that touch an earlier one's ground left out.
pub(crate) fn chosen(findings: &[Finding], safety: Safety) -> Vec<&Edit> {
    let mut chosen: Vec<&Edit> = Vec::new();
    for fix in findings.iter().filter_map(|finding| finding.fix.as_ref()) {
        let meets = |edit: &&Edit| {
            chosen.iter().any(|other| {
                // Two insertions at one place keep their order only by luck.
                edit.range.intersect(other.range).is_some()
            })
        };
        if fix.safety <= safety && !fix.edits.iter().any(|edit| meets(&edit)) {
            chosen.extend(&fix.edits);
        }
    }
    chosen.sort_by_key(|edit| (edit.range.start(), edit.range.end()));
    chosen
}

/// The text after the edits, which are sorted and apart.
pub(crate) fn applied(text: &str, edits: &[&Edit]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        result.push_str(&text[at..edit.range.start().to_usize()]);
        result.push_str(&edit.text);
        at = edit.range.end().to_usize();
    }
    result.push_str(&text[at..]);
    result
}

/// A unified difference of two texts.
pub(crate) fn patch(name: &str, before: &str, after: &str) -> String {
    similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}
