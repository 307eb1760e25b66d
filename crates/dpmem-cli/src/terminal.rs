//! When to colour and how wide a text may be. Pure: the caller looks at the terminal and the environment.

use std::ffi::OsStr;

/// The width of a text that goes to no terminal, in columns.
pub const DEFAULT_WIDTH: u16 = 100;
const MIN_WIDTH: u16 = 40;

/// Whether a text may carry colour: only on a terminal that understands it, and only without a non-empty
/// `NO_COLOR`.
pub fn colour(is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb")
}

/// The width to write for, in columns: `COLUMNS` if it is a number, else the terminal's own, else
/// [`DEFAULT_WIDTH`].
pub fn width(columns: Option<&OsStr>, terminal: Option<u16>) -> u16 {
    let asked = columns.and_then(|text| text.to_str()).and_then(|text| text.trim().parse::<u16>().ok());
    let known = asked.filter(|&n| n > 0).or(terminal.filter(|&n| n > 0));
    known.unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(text: &str) -> Option<&OsStr> {
        Some(OsStr::new(text))
    }

    #[test]
    fn colour_needs_a_terminal_and_no_objection() {
        assert!(colour(true, None, os("xterm")));
        assert!(colour(true, os(""), None));
        assert!(!colour(true, os("1"), os("xterm")));
        assert!(!colour(true, None, os("dumb")));
        assert!(!colour(false, None, os("xterm")));
    }

    #[test]
    fn width_prefers_columns_then_the_terminal() {
        assert_eq!(width(os("120"), Some(80)), 120);
        assert_eq!(width(os("wide"), Some(80)), 80);
        assert_eq!(width(os("0"), Some(80)), 80);
        assert_eq!(width(None, Some(0)), DEFAULT_WIDTH);
        assert_eq!(width(None, None), DEFAULT_WIDTH);
        assert_eq!(width(os("7"), None), MIN_WIDTH);
    }
}
