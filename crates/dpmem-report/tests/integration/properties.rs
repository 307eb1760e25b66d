//! What must hold for every report, however strange.

use dpmem_report::{
    Device, Direction, Finding, Frame, FreeTrust, History, Live, LiveState, Peak, PeakSite, Recording,
    Report, Screen, Severity, Site, SourceLines, Transfer, Usm, UsmKind, render,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

/// Any characters at all, and often those that terminals act on.
fn text() -> impl Strategy<Value = String> {
    let telling = prop::sample::select(vec![
        "\x1b[31m",
        "\x1b]0;t\x07",
        "\n",
        "\r",
        "\t",
        "\0",
        "\u{9b}1m",
        "\u{202e}",
        "\u{2028}",
        "数据",
        "👩\u{200d}🚀",
        "⌛\u{fe0e}",
        "☎\u{fe0f}",
        "🇩🇪",
        "e\u{301}",
        "/",
        "a_word",
        " ",
        "…",
        "\u{ad}",
        "क\u{94d}ष",
        "ﷺ",
        "\u{1160}",
        "ลำ",
        "لا",
        "\u{644}\u{200d}\u{627}",
    ]);
    let piece = prop_oneof![2 => telling.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
    prop_oneof![
        4 => vec(piece, 0..12).prop_map(|pieces| pieces.concat()),
        1 => "[a-z/ ]{0,300}",
    ]
}

fn frame() -> impl Strategy<Value = Frame> {
    (text(), any::<u32>(), prop_oneof![text(), Just("<module>".to_owned())], any::<bool>())
        .prop_map(|(file, line, function, library)| Frame { file, line, function, library })
}

fn stack() -> impl Strategy<Value = Vec<Frame>> {
    vec(frame(), 0..4)
}

fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..100.0, prop::num::f64::NORMAL, prop::num::f64::SUBNORMAL]
}

fn kind() -> impl Strategy<Value = UsmKind> {
    prop::sample::select(vec![UsmKind::Device, UsmKind::Host, UsmKind::Shared])
}

fn recording() -> impl Strategy<Value = Recording> {
    let flaws = (any::<u64>(), any::<u64>(), any::<u64>());
    (any::<bool>(), option::of(text()), option::of(text()), any::<u64>(), flaws, vec(text(), 0..3)).prop_map(
        |(
            complete,
            reason,
            mechanism,
            events,
            (unattributed_events, unknown_frees, failed_events),
            notes,
        )| {
            Recording {
                complete,
                reason,
                mechanism,
                events,
                unattributed_events,
                notes,
                unknown_frees,
                failed_events,
            }
        },
    )
}

fn device() -> impl Strategy<Value = Device> {
    let kind = prop::sample::select(vec!["cpu", "gpu"]);
    (filter(), text(), kind, any::<bool>(), option::of(any::<u64>())).prop_map(
        |(filter, name, kind, default, free_bytes)| Device {
            filter,
            name,
            backend: "opencl".to_owned(),
            device_type: kind.to_owned(),
            integrated: Some(default),
            default,
            score: free_bytes.map(|_| -7),
            capacity_bytes: free_bytes,
            max_alloc_bytes: free_bytes,
            free_bytes,
            free_source: None,
            free_trust: FreeTrust::Estimate,
        },
    )
}

/// Filter strings that usually name the same few devices.
fn filter() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just("opencl:cpu:0".to_owned()), 1 => text()]
}

fn usm() -> impl Strategy<Value = Usm> {
    (option::of(filter()), kind(), any::<[u64; 9]>()).prop_map(|(device, kind, numbers)| Usm {
        device,
        kind,
        current_bytes: numbers[0],
        peak_bytes: numbers[1],
        allocated_bytes: numbers[2],
        freed_bytes: numbers[3],
        current_count: numbers[4],
        peak_count: numbers[5],
        alloc_count: numbers[6],
        free_count: numbers[7],
        failed_count: if numbers[8] % 2 == 0 { 0 } else { numbers[8] },
    })
}

fn site() -> impl Strategy<Value = Site> {
    (0..9_u64, kind(), option::of(filter()), stack(), any::<[u64; 5]>(), seconds(), option::of(text()))
        .prop_map(|(id, kind, device, stack, numbers, runtime_s, label)| Site {
            id,
            kind,
            device,
            stack,
            alloc_count: numbers[0],
            allocated_bytes: numbers[1],
            peak_bytes: numbers[2],
            live_bytes: numbers[3],
            live_count: numbers[4],
            runtime_s,
            label,
        })
}

fn peak() -> impl Strategy<Value = Peak> {
    let part = (0..12_u64, any::<u64>(), any::<u64>()).prop_map(|(site, bytes, count)| PeakSite {
        site,
        bytes,
        count,
    });
    (any::<u64>(), option::of(seconds()), vec(part, 0..9)).prop_map(|(bytes, at_s, sites)| Peak {
        bytes,
        at_s,
        sites,
    })
}

fn live() -> impl Strategy<Value = Live> {
    let states = vec![LiveState::Referenced, LiveState::InFlight, LiveState::Cached, LiveState::Runtime];
    (0..12_u64, any::<u64>(), any::<u64>(), prop::sample::select(states)).prop_map(
        |(site, bytes, count, state)| Live {
            site,
            bytes,
            count,
            state,
            holders: Vec::new(),
            more_holders: 0,
        },
    )
}

fn transfer() -> impl Strategy<Value = Transfer> {
    let directions = vec![Direction::HostToDevice, Direction::DeviceToHost, Direction::DeviceToDevice];
    (prop::sample::select(directions), stack(), any::<u64>(), any::<u64>())
        .prop_map(|(direction, stack, count, bytes)| Transfer { direction, stack, count, bytes })
}

fn finding() -> impl Strategy<Value = Finding> {
    let severities = vec![Severity::Error, Severity::Warning, Severity::Note];
    let place = (option::of(text()), option::of(any::<u32>()));
    (text(), text(), prop::sample::select(severities), place, text(), text()).prop_map(
        |(code, name, severity, (file, line), message, advice)| Finding {
            evidence: [(code.clone(), line.into())].into_iter().collect(),
            code,
            name,
            severity,
            file,
            line,
            device: None,
            message,
            advice,
        },
    )
}

fn history() -> impl Strategy<Value = History> {
    (seconds(), vec(any::<u64>(), 0..90))
        .prop_map(|(interval_s, current_bytes)| History { interval_s, current_bytes })
}

fn report() -> impl Strategy<Value = Report> {
    let run = (vec(text(), 0..4), option::of(any::<i32>()), seconds(), recording());
    let memory = (vec(device(), 0..3), vec(usm(), 0..4), peak(), vec(site(), 0..9));
    let rest = (vec(transfer(), 0..9), vec(live(), 0..9), history(), vec(finding(), 0..7));
    (run, memory, rest).prop_map(|(run, memory, rest)| Report {
        schema: Report::SCHEMA,
        dpmem: "0.1.0".to_owned(),
        command: run.0,
        python: "3.11.7".to_owned(),
        pid: 1,
        exit_code: run.1,
        started: "2026-01-05T09:30:00Z".to_owned(),
        duration_s: run.2,
        recording: run.3,
        devices: memory.0,
        usm: memory.1,
        peak: memory.2,
        sites: memory.3,
        transfers: rest.0,
        live: rest.1,
        history: rest.2,
        pool: None,
        findings: rest.3,
    })
}

/// The same source text for every line.
struct Everywhere(String);

impl SourceLines for Everywhere {
    fn line(&self, _file: &str, _line: u32) -> Option<String> {
        Some(self.0.clone())
    }
}

fn acts_on_a_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_line_fits_and_is_clean(report in report(), source in text(), width in 0..140_usize) {
        let sources = Everywhere(source);
        let text = render(&report, &Screen { width, colour: false, cwd: Some("/".into()), sources: &sources });
        prop_assert!(text.ends_with('\n'));
        for line in text.split('\n') {
            prop_assert!(line.width() <= width.clamp(40, 120), "{} columns: {line}", line.width());
            prop_assert!(!line.contains(acts_on_a_terminal), "{line:?}");
        }
    }

    #[test]
    fn json_is_read_back_as_it_was_written(report in report()) {
        let json = report.to_json();
        prop_assert!(!json.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<Report>(&json)?, report);
    }
}
