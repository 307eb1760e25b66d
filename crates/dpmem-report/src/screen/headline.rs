//! The first lines: what ran, how it ended, and on which devices it worked. Owns nothing but these.

use super::View;
use super::line::{Ink, Line};
use super::{text, usage};
use crate::bytes;
use crate::report::Device;

const GAP: usize = 2;

pub(super) fn lines(view: &View<'_>) -> Vec<Line> {
    let mut lines = what_ran(view);
    lines.extend(used_devices(view).into_iter().map(|filter| {
        let device = view.report.devices.iter().find(|device| device.filter == filter);
        device_line(filter, device, view.width)
    }));
    lines
}

fn what_ran(view: &View<'_>) -> Vec<Line> {
    let report = view.report;
    let (ink, ending) = ending(report.exit_code);
    let duration = format!(" · {}", bytes::duration(report.duration_s));
    let end_columns = text::columns(&ending) + text::columns(&duration);
    let command = text::clean(&report.command.join(" ")).into_owned();
    let beside = view.width.saturating_sub(end_columns + GAP);
    let own_line = beside < text::columns(&command).min(view.width / 3);
    let room = if own_line { view.width } else { beside };
    let mut lines = vec![Line::of(Ink::Strong, &text::cut_right(&command, room))];
    if own_line {
        lines.push(Line::default());
    }
    if let Some(last) = lines.last_mut() {
        last.pad_to(view.width.saturating_sub(end_columns));
        last.push(ink, &ending);
        last.push(Ink::Plain, &duration);
    }
    lines
}

fn ending(exit_code: Option<i32>) -> (Ink, String) {
    match exit_code {
        None => (Ink::Plain, "still running".to_owned()),
        Some(0) => (Ink::Plain, "exit code 0".to_owned()),
        Some(code) if code > 0 => (Ink::Alarm, format!("exit code {code}")),
        Some(code) => {
            let number = code.unsigned_abs();
            let text = match signal_name(number) {
                Some(name) => format!("killed by {name} (signal {number})"),
                None => format!("killed by signal {number}"),
            };
            (Ink::Alarm, text)
        }
    }
}

/// Names of the signals that programs die by, as Linux numbers them.
fn signal_name(number: u32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// Filter strings of the devices with memory of their own, in the order of their rows.
fn used_devices<'a>(view: &View<'a>) -> Vec<&'a str> {
    let mut filters = Vec::new();
    for row in view.report.usm.iter().filter(|row| usage::is_used(row)) {
        if let Some(filter) = row.device.as_deref()
            && !filters.contains(&filter)
        {
            filters.push(filter);
        }
    }
    filters
}

fn device_line(filter: &str, device: Option<&Device>, width: usize) -> Line {
    let mut line = Line::of(Ink::Plain, &format!("ran on {filter}"));
    let Some(device) = device else {
        return line;
    };
    let mut traits = Vec::new();
    traits.extend((device.device_type == "cpu").then_some("a CPU"));
    traits.extend(device.default.then_some("the default"));
    let traits = if traits.is_empty() { String::new() } else { format!(" ({})", traits.join(", ")) };
    let room = width.saturating_sub(line.columns() + text::columns(&traits) + GAP);
    let name = text::cut_right(&text::clean(device.name.trim()), room).into_owned();
    if !name.is_empty() {
        line.push(Ink::Plain, ", ");
        line.push(Ink::Plain, &name);
    }
    line.with(Ink::Plain, &traits)
}
