//! Text from outside made fit for a terminal: cleaned, measured, cut and wrapped.
//!
//! Owns the only rules for these four. Must not know about reports. Invariant: whatever is cut or wrapped here fits
//! the columns that were asked for.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) const ELLIPSIS: char = '…';

/// `text` without anything that a terminal would obey: control characters become pictures of themselves, characters
/// that reorder or break lines become `�`, invisible ones are dropped.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| harmless(c) == Some(c)) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().filter_map(harmless).collect())
    }
}

fn harmless(c: char) -> Option<char> {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)),
        '\x7f' => Some('\u{2421}'),
        // C1 controls, line and paragraph separators, and everything that changes the direction of text.
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fff9}'..='\u{fffb}' => Some('\u{fffd}'),
        // Joiners, fillers, variation selectors and tags: terminals disagree on their width.
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => None,
        _ => Some(c),
    }
}

/// Terminal columns of clean text.
pub(super) fn columns(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Clean text cut at the right to `width` columns, with an ellipsis where anything was lost.
pub(super) fn cut_right(text: &str, width: usize) -> Cow<'_, str> {
    if columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut kept = prefix(text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        kept.push(ELLIPSIS);
    }
    Cow::Owned(kept)
}

/// A clean path cut at the left to `width` columns, between its components where possible.
pub(super) fn cut_path(path: &str, width: usize) -> Cow<'_, str> {
    if columns(path) <= width {
        return Cow::Borrowed(path);
    }
    let Some(room) = width.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let component = path.match_indices('/').map(|(at, _)| &path[at..]).find(|tail| columns(tail) <= room);
    Cow::Owned(format!("{ELLIPSIS}{}", component.unwrap_or_else(|| suffix(path, room))))
}

/// The words of `text` in lines of at most `width` columns; what does not fit `max_lines` ends in an ellipsis.
pub(super) fn wrap(text: &str, width: usize, max_lines: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let cleaned = clean(word);
        let mut rest: &str = &cleaned;
        while !rest.is_empty() {
            if lines.len() == max_lines {
                return with_ellipsis(lines, width);
            }
            let gap = usize::from(!line.is_empty());
            if columns(&line) + gap + columns(rest) <= width {
                line.extend((gap == 1).then_some(' '));
                line.push_str(rest);
                break;
            }
            if line.is_empty() {
                let (part, after) = split_word(rest, width);
                line.push_str(part);
                rest = after;
            }
            lines.push(std::mem::take(&mut line));
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    if lines.len() > max_lines {
        lines.truncate(max_lines);
        return with_ellipsis(lines, width);
    }
    lines
}

fn with_ellipsis(mut lines: Vec<String>, width: usize) -> Vec<String> {
    if let Some(last) = lines.last_mut() {
        last.push_str(" …");
        if columns(last) > width {
            *last = format!("{}{ELLIPSIS}", prefix(last, width.saturating_sub(1)));
        }
    }
    lines
}

/// At least one character of a word that is wider than a line, so that wrapping always ends.
fn split_word(word: &str, width: usize) -> (&str, &str) {
    let part = prefix(word, width);
    let first = word.chars().next().map_or(0, char::len_utf8);
    word.split_at(part.len().max(first))
}

/// The longest beginning of `text` within `width` columns.
fn prefix(text: &str, width: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        used += char_columns(c);
        (used > width).then_some(at)
    });
    let mut kept = &text[..end.unwrap_or(text.len())];
    // Some sequences are wider than the sum of their characters.
    while columns(kept) > width {
        kept = kept.char_indices().next_back().map_or("", |(at, _)| &kept[..at]);
    }
    kept
}

/// The longest end of `text` within `width` columns.
fn suffix(text: &str, width: usize) -> &str {
    let mut used = 0;
    let start = text.char_indices().rev().find_map(|(at, c)| {
        used += char_columns(c);
        (used > width).then_some(at + c.len_utf8())
    });
    let mut kept = &text[start.unwrap_or(0)..];
    while columns(kept) > width {
        let first = kept.chars().next().map_or(0, char::len_utf8);
        kept = &kept[first..];
    }
    kept
}

fn char_columns(c: char) -> usize {
    UnicodeWidthChar::width(c).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_not_obeyed() {
        assert_eq!(clean("a\x1b[31mb\r\n\x7f"), "a␛[31mb␍␊␡");
        assert_eq!(clean("a\u{9b}31m\u{202e}b\u{200b}c\u{2028}"), "a�31m�bc�");
        assert!(matches!(clean("plain übung 数据"), Cow::Borrowed(_)));
    }

    #[test]
    fn right_cut_counts_columns() {
        assert_eq!(cut_right("abcdef", 6), "abcdef");
        assert_eq!(cut_right("abcdef", 5), "abcd…");
        assert_eq!(cut_right("数据数据", 6), "数据…");
        assert_eq!(cut_right("数据", 1), "…");
        assert_eq!(cut_right("abc", 0), "");
    }

    #[test]
    fn paths_are_cut_at_components_from_the_left() {
        assert_eq!(cut_path("/a/bcd/efg.py", 13), "/a/bcd/efg.py");
        assert_eq!(cut_path("/a/bcd/efg.py", 12), "…/bcd/efg.py");
        assert_eq!(cut_path("/a/bcd/efg.py", 9), "…/efg.py");
        assert_eq!(cut_path("/a/bcd/efg.py", 6), "…fg.py");
        assert_eq!(cut_path("/a/bcd/efg.py", 0), "");
    }

    #[test]
    fn text_wraps_at_words_and_breaks_what_is_too_long() {
        assert_eq!(wrap("one two three", 8, 9), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4, 9), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("one two three four", 7, 2), ["one two", "three …"]);
        assert_eq!(wrap("  \n ", 7, 2), Vec::<String>::new());
        assert_eq!(wrap("数据数据", 3, 9), ["数", "据", "数", "据"]);
    }
}
