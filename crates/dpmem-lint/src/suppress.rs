//! `# noqa` and `# noqa: DPM301` comments.

use rustc_hash::FxHashMap;

use crate::finding::Finding;
use crate::parse::Parsed;
use crate::source::Source;

/// The suppressions of a text, by line.
pub(crate) struct Suppressions {
    lines: FxHashMap<usize, Codes>,
}

enum Codes {
    All,
    Some(Vec<String>),
}

impl Suppressions {
    pub(crate) fn of(source: &Source, parsed: &Parsed) -> Self {
        let mut lines = FxHashMap::default();
        for range in parsed.comments() {
            if let Some(codes) = codes(source.slice(range)) {
                lines.insert(source.line(range.start()), codes);
            }
        }
        Self { lines }
    }

    /// True if a comment on the finding's first or last line silences it.
    pub(crate) fn silence(&self, source: &Source, finding: &Finding) -> bool {
        if self.lines.is_empty() {
            return false;
        }
        [finding.range.start(), finding.range.end()].into_iter().any(|offset| {
            match self.lines.get(&source.line(offset)) {
                Some(Codes::All) => true,
                Some(Codes::Some(codes)) => codes.iter().any(|code| finding.code.starts_with(code.as_str())),
                None => false,
            }
        })
    }
}

/// The codes that a comment names, if it is a suppression.
fn codes(comment: &str) -> Option<Codes> {
    let lower = comment.to_ascii_lowercase();
    let at = lower.find("noqa")?;
    if !lower[..at].trim_end_matches([' ', '\t']).ends_with('#') {
        return None;
    }
    let rest = comment[at + 4..].trim_start();
    let Some(list) = rest.strip_prefix(':') else {
        return (rest.is_empty() || !rest.starts_with(|c: char| c.is_alphanumeric())).then_some(Codes::All);
    };
    let codes: Vec<String> = list
        .split([',', ' ', '\t'])
        .filter(|word| !word.is_empty())
        .map_while(|word| {
            let word = word.to_ascii_uppercase();
            let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
            let digits = word.bytes().skip(letters).all(|byte| byte.is_ascii_digit());
            (letters > 0 && digits && word.len() > letters).then_some(word)
        })
        .collect();
    Some(Codes::Some(codes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_read_as_people_write_them() {
        let of = |text: &str| match codes(text) {
            None => "none".to_owned(),
            Some(Codes::All) => "all".to_owned(),
            Some(Codes::Some(codes)) => codes.join("+"),
        };
        assert_eq!(of("# noqa"), "all");
        assert_eq!(of("#NOQA"), "all");
        assert_eq!(of("# noqa: DPM301"), "DPM301");
        assert_eq!(of("# noqa:dpm301,DPM4 E501 because"), "DPM301+DPM4+E501");
        assert_eq!(of("# because # noqa: DPM301"), "DPM301");
        assert_eq!(of("# see noqa"), "none");
        assert_eq!(of("# noqaish"), "none");
    }
}
