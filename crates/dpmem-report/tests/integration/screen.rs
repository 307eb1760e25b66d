//! The screen as people see it.

use dpmem_report::{HostPool, NoSources, Pool, Report, RescuedBy, Screen, render};
use insta::assert_snapshot;

use crate::fixtures::{report, screen};

/// The screen of `name` at three widths, one below the other.
fn at_three_widths(name: &str) -> String {
    let report = report(name);
    let mut text = String::new();
    for width in [60, 80, 120] {
        text.push_str(&format!("{}\n{}\n", "=".repeat(width), render(&report, &screen(width))));
    }
    text
}

#[test]
fn busy() {
    assert_snapshot!(at_three_widths("busy"));
}

#[test]
fn empty() {
    assert_snapshot!(at_three_widths("empty"));
}

#[test]
fn incomplete() {
    assert_snapshot!(at_three_widths("incomplete"));
}

#[test]
fn failures() {
    assert_snapshot!(at_three_widths("failures"));
}

#[test]
fn long_paths() {
    assert_snapshot!(at_three_widths("long_paths"));
}

#[test]
fn wide_characters() {
    assert_snapshot!(at_three_widths("wide_characters"));
}

#[test]
fn hostile() {
    assert_snapshot!(at_three_widths("hostile"));
}

#[test]
fn narrowest() {
    assert_snapshot!(render(&report("busy"), &screen(40)));
}

#[test]
fn what_no_limit_counts_is_told_apart() {
    let mut report = report("empty");
    let shown = |report: &Report| {
        let text = render(report, &screen(80));
        let pool =
            text.lines().skip_while(|line| !line.starts_with("Pool")).take_while(|line| !line.is_empty());
        pool.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let host = HostPool { reserved_bytes: 2, cached_bytes: 0, peak_reserved_bytes: 2 };
    let pool = Pool {
        limit_bytes: Some(80 << 20),
        reserved_bytes: 64 << 20,
        cached_bytes: 0,
        peak_reserved_bytes: 64 << 20,
        hits: 0,
        misses: 4,
        trims: 0,
        rescues: 0,
        rescued_by: RescuedBy::default(),
        host,
    };
    report.pool = Some(pool.clone());
    let head = "Pool, limit 80 MiB cached peak hits misses rescued";
    assert_eq!(
        shown(&report),
        [head, "reserved 0 B 64 MiB 0 4 0"],
        "the library's own few bytes are left out"
    );
    report.pool = Some(Pool { host: HostPool { peak_reserved_bytes: 96 << 20, ..host }, ..pool });
    assert_eq!(shown(&report)[1..], ["reserved 0 B 64 MiB 0 4 0", "host memory (no limit) 0 B 96 MiB"]);
}

#[test]
fn colours() {
    let screen = Screen { colour: true, ..screen(80) };
    let text = ["failures", "incomplete"].map(|name| render(&report(name), &screen)).join("\n");
    assert_snapshot!(text.replace('\x1b', "ESC"));
}

#[test]
fn colour_changes_nothing_else() {
    for name in ["busy", "failures", "incomplete", "hostile", "wide_characters"] {
        let report = report(name);
        let coloured = render(&report, &Screen { colour: true, ..screen(80) });
        assert_eq!(without_escapes(&coloured), render(&report, &screen(80)), "{name}");
    }
}

fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    plain
}

#[test]
fn a_busy_report_fits_about_one_screen() {
    for width in [80, 100, 120] {
        let lines = render(&report("busy"), &screen(width)).lines().count();
        assert!(lines <= 45, "{lines} lines at {width} columns");
    }
}

#[test]
fn widths_are_clamped() {
    let report = report("busy");
    assert_eq!(render(&report, &screen(0)), render(&report, &screen(40)));
    assert_eq!(render(&report, &screen(usize::MAX)), render(&report, &screen(120)));
}

/// Rows of the section whose title starts with `title`.
fn section(text: &str, title: &str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with(title));
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_line_reached_through_two_stacks_is_one_row() {
    let text = render(&report("busy"), &screen(120));
    for title in ["At the peak", "Busiest lines"] {
        assert_eq!(section(&text, title).matches("train.py:18 in step").count(), 1, "{title}");
    }
}

#[test]
fn states_of_one_line_stay_apart() {
    let mut report = report("busy");
    report.live.retain(|live| live.site == 7);
    let text = section(&render(&report, &screen(120)), "Still in use at the end: 12 MiB");
    let rows: Vec<_> = text.lines().skip(1).collect();
    assert!(rows.iter().all(|row| row.starts_with("  train.py:104 in <listcomp>")), "{text}");
    assert!(rows[0].ends_with("in flight") && rows[1].ends_with("cached"), "{text}");
}

#[test]
fn without_a_user_line_the_innermost_library_line_is_marked() {
    let mut report = report("busy");
    report.peak.sites.retain(|part| part.site == 8);
    let text = section(&render(&report, &screen(120)), "At the peak");
    assert!(text.contains("site-packages/dpnp/dpnp_array.py:44 in _sort_run (library)"), "{text}");
}

#[test]
fn only_devices_with_memory_are_named() {
    let text = render(&report("busy"), &screen(80));
    assert!(text.contains("ran on opencl:cpu:0"));
    assert!(!text.contains("level_zero:gpu:0"));
}

#[test]
fn signals_are_named_where_they_have_a_name() {
    let ending = |code| {
        let report = Report { exit_code: code, ..report("empty") };
        render(&report, &screen(80)).lines().next().unwrap_or_default().to_owned()
    };
    assert!(ending(Some(-15)).ends_with("killed by SIGTERM (signal 15) · 840 ms"));
    assert!(ending(Some(-60)).ends_with("killed by signal 60 · 840 ms"));
    assert!(ending(Some(i32::MIN)).ends_with("killed by signal 2147483648 · 840 ms"));
    assert!(ending(Some(3)).ends_with("exit code 3 · 840 ms"));
    assert!(ending(None).ends_with("still running · 840 ms"));
}

#[test]
fn numbers_are_never_cut() {
    let mut report = report("contract");
    report.recording.events = 999_999_999;
    report.usm[0].alloc_count = 999_999_999;
    report.usm[0].free_count = 888_888_888;
    report.sites[0].alloc_count = 777_777_777;
    report.sites[0].stack[0].line = u32::MAX;
    report.sites[0].stack[0].function = "f".repeat(200);
    report.sites[0].stack[0].file = format!("/{}.py", "d".repeat(200));
    report.findings[0].line = Some(u32::MAX);
    report.findings[0].file = Some("d".repeat(200));
    for width in [40, 60, 80] {
        let text = render(&report, &screen(width));
        for number in ["999,999,999", "888,888,888", "777,777,777"] {
            assert!(text.contains(number), "{number} at {width}:\n{text}");
        }
        let places: Vec<_> = text.lines().filter(|line| line.contains("ddd")).collect();
        assert!(places.len() >= 4, "peak, in use, busiest and a finding at {width}:\n{text}");
        assert!(places.iter().all(|line| line.contains(":4294967295")), "{width}:\n{text}");
    }
}

#[test]
fn without_sources_and_directory_paths_are_whole() {
    let screen = Screen { width: 120, colour: false, cwd: None, sources: &NoSources };
    let text = render(&report("busy"), &screen);
    assert!(text.contains("/home/user/project/train.py:17 in step"));
    assert!(!text.contains("dpnp.tanh"));
}
