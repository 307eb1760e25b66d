//! An upper bound on how deep the syntax tree of a text can be, found without building it.
//!
//! The parser, and every walk over its tree, recurses per level. This scanner knows just enough of the lexical
//! grammar (strings, f-strings, comments, brackets) to add up, over all brackets that are open, the operators since
//! the last comma. Recursion never goes deeper than that sum.

/// Where the scanner is: in code between brackets, or in the literal part of an f-string.
enum Mode {
    Code { operators: usize },
    FString { quote: u8, triple: bool, raw: bool },
}

/// Open brackets and f-strings beyond which a text is refused; CPython stops at 200.
const BRACKET_LIMIT: usize = 1000;

/// Offset of the first place whose nesting may exceed `limit`.
pub(super) fn too_deep(text: &str, limit: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut modes = vec![Mode::Code { operators: 0 }];
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        if depth > limit || modes.len() > BRACKET_LIMIT {
            return Some(at);
        }
        if let Some(Mode::FString { quote, triple, raw }) = modes.last() {
            let (quote, triple, raw) = (*quote, *triple, *raw);
            at = literal_part(bytes, at, quote, triple, raw, &mut modes, &mut depth);
            continue;
        }
        at = code_part(bytes, at, &mut modes, &mut depth);
    }
    None
}

/// Steps over one byte or one marker of an f-string's literal text.
fn literal_part(
    bytes: &[u8],
    at: usize,
    quote: u8,
    triple: bool,
    raw: bool,
    modes: &mut Vec<Mode>,
    depth: &mut usize,
) -> usize {
    match bytes[at] {
        b'\\' if !raw => at + 2,
        b'{' if bytes.get(at + 1) == Some(&b'{') => at + 2,
        b'{' => {
            open(modes, depth);
            at + 1
        }
        byte if byte == quote && (!triple || is_triple(bytes, at)) => {
            modes.pop();
            at + if triple { 3 } else { 1 }
        }
        b'\n' if !triple => {
            modes.pop();
            at
        }
        _ => at + 1,
    }
}

/// Steps over one token of code.
fn code_part(bytes: &[u8], at: usize, modes: &mut Vec<Mode>, depth: &mut usize) -> usize {
    match bytes[at] {
        b'#' => line_end(bytes, at),
        b'\'' | b'"' => string(bytes, at, modes),
        b'(' | b'[' | b'{' => {
            open(modes, depth);
            at + 1
        }
        b')' | b']' | b'}' => {
            close(modes, depth);
            at + 1
        }
        b',' | b';' => {
            reset(modes, depth);
            at + 1
        }
        b'\n' if modes.len() == 1 => {
            reset(modes, depth);
            at + 1
        }
        b'+' | b'-' | b'~' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^' | b'<' | b'>' | b'.' => {
            count(modes, depth);
            at + 1
        }
        byte if byte.is_ascii_alphabetic() || byte == b'_' => {
            let end = word_end(bytes, at);
            if matches!(
                &bytes[at..end],
                b"not" | b"await" | b"lambda" | b"if" | b"else" | b"and" | b"or" | b"in" | b"is" | b"yield"
            ) {
                count(modes, depth);
            }
            end
        }
        byte if byte.is_ascii_digit() => number_end(bytes, at),
        _ => at + 1,
    }
}

fn open(modes: &mut Vec<Mode>, depth: &mut usize) {
    count(modes, depth);
    modes.push(Mode::Code { operators: 0 });
}

fn close(modes: &mut Vec<Mode>, depth: &mut usize) {
    if modes.len() > 1
        && let Some(Mode::Code { operators }) = modes.pop()
    {
        *depth -= operators;
        // A replacement field costs a level of its f-string only while it is open.
        if matches!(modes.last(), Some(Mode::FString { .. })) {
            *depth -= 1;
        }
    }
}

fn count(modes: &mut [Mode], depth: &mut usize) {
    *depth += 1;
    if let Some(Mode::Code { operators }) = modes.last_mut() {
        *operators += 1;
    }
}

fn reset(modes: &mut [Mode], depth: &mut usize) {
    if let Some(Mode::Code { operators }) = modes.last_mut() {
        *depth -= *operators;
        *operators = 0;
    }
}

/// Steps over a plain string, or enters an f-string.
fn string(bytes: &[u8], at: usize, modes: &mut Vec<Mode>) -> usize {
    let quote = bytes[at];
    let triple = is_triple(bytes, at);
    let mut start = at;
    while start > 0 && at - start < 3 && bytes[start - 1].is_ascii_alphabetic() {
        start -= 1;
    }
    let prefix = &bytes[start..at];
    let raw = prefix.iter().any(|byte| matches!(byte, b'r' | b'R'));
    let is_prefix = prefix.len() <= 2 && prefix.iter().all(|byte| b"rRbBuUfFtT".contains(byte));
    let body = at + if triple { 3 } else { 1 };
    if is_prefix && prefix.iter().any(|byte| b"fFtT".contains(byte)) {
        modes.push(Mode::FString { quote, triple, raw });
        return body;
    }
    let mut at = body;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' if !triple => return at,
            byte if byte == quote && !triple => return at + 1,
            byte if byte == quote && is_triple(bytes, at) => return at + 3,
            _ => at += 1,
        }
    }
    at
}

fn is_triple(bytes: &[u8], at: usize) -> bool {
    at + 2 < bytes.len() && bytes[at + 1] == bytes[at] && bytes[at + 2] == bytes[at]
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    bytes[at..].iter().position(|byte| !is_word(byte)).map_or(bytes.len(), |length| at + length)
}

fn number_end(bytes: &[u8], at: usize) -> usize {
    let is_number = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    bytes[at..].iter().position(|byte| !is_number(byte)).map_or(bytes.len(), |length| at + length)
}
