//! How far the record can be trusted: complete or why not, what it could not see, and notes. Owns these lines.

use super::View;
use super::line::{Ink, Line};
use super::text;
use crate::bytes;
use crate::report::Recording;

/// A reason or note longer than this is cut.
const MAX_LINES: usize = 3;
const INDENT: usize = 2;

pub(super) fn lines(view: &View<'_>) -> Vec<Line> {
    let recording = &view.report.recording;
    let (ink, verdict) = verdict(recording);
    let mut lines = wrapped(ink, &verdict, view.width);
    let gaps = [
        (recording.unattributed_events, "came from runtime threads and have no Python line", "event"),
        (recording.failed_events, "could not be recorded", "event"),
        (recording.unknown_frees, "were of blocks that nobody saw being allocated", "free"),
    ];
    for (number, what, noun) in gaps.into_iter().filter(|(number, _, _)| *number > 0) {
        lines.extend(wrapped(Ink::Plain, &sentence(number, noun, what), view.width));
    }
    for note in &recording.notes {
        lines.extend(wrapped(Ink::Plain, note, view.width));
    }
    lines
}

fn verdict(recording: &Recording) -> (Ink, String) {
    if !recording.complete {
        let reason = recording.reason.as_deref().unwrap_or("the reason is unknown");
        return (Ink::Caution, format!("recording INCOMPLETE: {reason}"));
    }
    let plural = if recording.events == 1 { "" } else { "s" };
    let events = format!("recording complete: {} event{plural}", bytes::count(recording.events));
    let through = recording.mechanism.as_deref().filter(|mechanism| !mechanism.trim().is_empty());
    (Ink::Plain, through.map_or(events.clone(), |mechanism| format!("{events} through {mechanism}")))
}

fn sentence(number: u64, noun: &str, what: &str) -> String {
    if number == 1 {
        let what = what.replace("and have", "and has").replace("were of blocks", "was of a block");
        format!("1 {noun} {what}")
    } else {
        format!("{} {noun}s {what}", bytes::count(number))
    }
}

/// `content` in lines of which all but the first are indented.
fn wrapped(ink: Ink, content: &str, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for part in text::wrap(content, width - INDENT, MAX_LINES) {
        let indent = if lines.is_empty() { 0 } else { INDENT };
        lines.push(Line::of(Ink::Plain, &" ".repeat(indent)).with(ink, &part));
    }
    lines
}
