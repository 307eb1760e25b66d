//! The only module that names the Python parser.
//!
//! It owns the way from text to syntax tree, the limits on hostile text (size is the walker's, nesting is checked
//! here before the parser sees the text) and the vocabulary of nodes that the rest of the crate matches on. It must
//! not judge the program.

mod nesting;

use ruff_python_ast::token::TokenKind;
pub(crate) use ruff_python_ast::visitor;
pub(crate) use ruff_python_ast::{self as ast, Expr, Stmt};
pub(crate) use ruff_text_size::{Ranged, TextRange, TextSize};

/// Nested operators and calls beyond which a text is refused.
const NESTING_LIMIT: usize = 50_000;
/// Nesting that an ordinary stack carries.
const ORDINARY_NESTING: usize = 500;

/// A module that parsed.
pub(crate) struct Parsed {
    parsed: ruff_python_parser::Parsed<ast::ModModule>,
}

/// Why a text is no Python module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Byte offset in the text.
    pub offset: usize,
    /// What the parser expected, as a lower-case fragment.
    pub message: String,
}

impl Parsed {
    /// The statements of the module.
    pub(crate) fn suite(&self) -> &[Stmt] {
        &self.parsed.syntax().body
    }

    /// Ranges of the comments, in order.
    pub(crate) fn comments(&self) -> impl Iterator<Item = TextRange> + '_ {
        self.parsed.tokens().iter().filter(|token| token.kind() == TokenKind::Comment).map(Ranged::range)
    }
}

/// True if the text nests so deeply that its tree needs a large stack.
pub(crate) fn is_deep(text: &str) -> bool {
    nesting::too_deep(text, ORDINARY_NESTING).is_some()
}

/// Parses a module of any syntax from Python 3.8 to 3.14.
///
/// # Errors
/// The first syntax error, or that the text nests too deeply.
pub(crate) fn parse(text: &str) -> Result<Parsed, ParseError> {
    if let Some(offset) = nesting::too_deep(text, NESTING_LIMIT) {
        return Err(ParseError { offset, message: "parse: expressions are nested too deeply".to_owned() });
    }
    match ruff_python_parser::parse_module(text) {
        Ok(parsed) => Ok(Parsed { parsed }),
        Err(error) => Err(ParseError {
            offset: error.location.start().to_usize(),
            message: format!("parse: {}", lower_first(&error.error.to_string())),
        }),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !chars.as_str().starts_with(char::is_uppercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_syntax_parses() {
        for text in [
            "def f(a, /, b): return (y := a)\n",
            "match x:\n    case {'a': [1, *_]} if y: pass\n",
            "try: pass\nexcept* ValueError: pass\n",
            "type X[T] = list[T]\ndef f[T: int](x: T) -> T: ...\n",
            "f'{f\"{1!r:>{2}}\"}'\n",
            "x = t'{1}'\n",
            "try: pass\nexcept A, B: pass\n",
            "async def f():\n    async with a as b, c: [x async for x in y]\n",
            "with (open(a) as b, open(c) as d): pass\n",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_not_overflowed() {
        for (open, close) in [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("lambda: ", ""), ("f(", ")")]
        {
            let text = format!("x = {}1{}\n", open.repeat(200_000), close.repeat(200_000));
            assert!(parse(&text).is_err(), "{open}");
        }
        assert!(parse(&format!("x = 1{}\n", "+1".repeat(200_000))).is_err());
        assert!(parse(&format!("x = a{}\n", ".b".repeat(200_000))).is_err());
        assert!(parse(&format!("x = a{}\n", "()".repeat(200_000))).is_err());
        assert!(parse(&format!("x = {}1{}\n", "f'{".repeat(20_000), "}'".repeat(20_000))).is_err());
        assert!(parse(&format!("x = [{}]\n", "1,".repeat(200_000))).is_ok());
        assert!(parse(&format!("x = [{}]\n", "-1+2,".repeat(100_000))).is_ok());
    }
}
