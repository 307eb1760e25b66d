//! One line of the screen, and the few inks it is written in.
//!
//! Owns the last word on width and on control characters: whatever the sections put together, what is written here
//! fits and is clean. Must not know about reports.

use anstyle::{AnsiColor, Style};

use super::text;

/// How a piece of text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    /// Headings.
    Strong,
    /// What may be skipped: source text, column heads.
    Faint,
    /// An incomplete record, warnings.
    Caution,
    /// Failures.
    Alarm,
}

impl Ink {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Caution => AnsiColor::Yellow.on_default(),
            Self::Alarm => AnsiColor::Red.on_default(),
        }
    }
}

/// Pieces of text that stand in one line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pieces: Vec<(Ink, String)>,
    columns: usize,
}

impl Line {
    pub(super) fn of(ink: Ink, content: &str) -> Self {
        Self::default().with(ink, content)
    }

    pub(super) fn with(mut self, ink: Ink, content: &str) -> Self {
        self.push(ink, content);
        self
    }

    pub(super) fn push(&mut self, ink: Ink, content: &str) {
        let content = text::clean(content);
        self.columns += text::columns(&content);
        self.pieces.push((ink, content.into_owned()));
    }

    /// Spaces up to column `column`, none if the line is already there.
    pub(super) fn pad_to(&mut self, column: usize) {
        let missing = column.saturating_sub(self.columns);
        if missing > 0 {
            self.push(Ink::Plain, &" ".repeat(missing));
        }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Appends the line without a line end, cut to `width` columns.
    pub(super) fn write(&self, out: &mut String, width: usize, colour: bool) {
        let whole: String = self.pieces.iter().map(|(_, piece)| piece.as_str()).collect();
        let fits = text::columns(&whole) <= width;
        let mut room = if fits { whole.trim_end().len() } else { text::cut_right(&whole, width).len() };
        // Byte lengths are safe to compare: a cut line is a beginning of the whole one, plus the ellipsis.
        let cut = !fits;
        if cut {
            room = room.saturating_sub(text::ELLIPSIS.len_utf8());
        }
        for (ink, piece) in &self.pieces {
            let end = piece.len().min(room);
            room -= end;
            let shown = &piece[..end];
            if colour && *ink != Ink::Plain && !shown.trim().is_empty() {
                let style = ink.style();
                out.push_str(&format!("{style}{shown}{style:#}"));
            } else {
                out.push_str(shown);
            }
        }
        out.extend(cut.then_some(text::ELLIPSIS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &Line, width: usize, colour: bool) -> String {
        let mut out = String::new();
        line.write(&mut out, width, colour);
        out
    }

    #[test]
    fn a_line_is_cut_across_its_pieces() {
        let line = Line::of(Ink::Strong, "数据").with(Ink::Plain, "abc").with(Ink::Faint, "def");
        assert_eq!(written(&line, 10, false), "数据abcdef");
        assert_eq!(written(&line, 9, false), "数据abcd…");
        assert_eq!(written(&line, 4, false), "数…");
    }

    #[test]
    fn colour_wraps_pieces_and_only_when_asked() {
        let line = Line::of(Ink::Alarm, "bad").with(Ink::Plain, " ok  ");
        assert_eq!(written(&line, 20, true), "\x1b[31mbad\x1b[0m ok");
        assert_eq!(written(&line, 20, false), "bad ok");
    }
}
