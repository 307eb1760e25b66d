//! After a fix the file parses, the finding is gone, a second run changes nothing, and untouched text stays.

mod support;

use proptest::prelude::*;
use support::{corpus, findings, fixed};

fn fixable(text: &str, safe_only: bool) -> usize {
    findings(text)
        .iter()
        .filter(|finding| match finding["fix"]["safety"].as_str() {
            Some("safe") => true,
            Some(_) => !safe_only,
            None => false,
        })
        .count()
}

/// Lines of `before` that no edit touches, in order.
fn untouched(before: &str) -> Vec<&str> {
    let mut touched = std::collections::BTreeSet::new();
    for finding in findings(before) {
        for edit in finding["fix"]["edits"].as_array().into_iter().flatten() {
            let number = |key: &str| edit[key].as_u64().expect("a number") as usize;
            // An insertion at the start of a line leaves the line itself alone.
            let inserted = number("line") == number("end_line") && number("column") == number("end_column");
            if !(inserted && edit["text"].as_str().expect("a text").contains('\n')) {
                touched.extend(number("line")..=number("end_line"));
            }
        }
    }
    before.lines().enumerate().filter(|(at, _)| !touched.contains(&(at + 1))).map(|(_, line)| line).collect()
}

fn is_subsequence(lines: &[&str], of: &str) -> bool {
    let mut rest = of.lines();
    lines.iter().all(|line| rest.any(|other| other == *line))
}

fn check(option: &str, name: &str, text: &str) -> bool {
    let after = fixed(option, text);
    let safe_only = option == "--fix";
    assert_eq!(fixable(&after, safe_only), 0, "{name}: a fixable finding is left\n{after}");
    assert_eq!(fixed(option, &after), after, "{name}: not idempotent");
    assert!(is_subsequence(&untouched(text), &after), "{name}: untouched lines changed\n{after}");
    let comments = |text: &str| text.matches('#').count();
    assert!(comments(&after) >= comments(text), "{name}: a comment is lost\n{after}");
    // What is inside a fixed expression may come to light.
    assert!(findings(&after).len() <= findings(text).len(), "{name}: a fix made a finding");
    after != text
}

#[test]
fn fixes_hold_on_the_corpus() {
    let (mut safe, mut all) = (0, 0);
    for (path, text) in corpus() {
        let name = path.display().to_string();
        safe += usize::from(check("--fix", &name, &text));
        all += usize::from(check("--unsafe-fixes", &name, &text));
    }
    assert!(safe >= 10 && all >= 35, "{safe} files with safe fixes, {all} with any");
}

#[test]
fn innocent_files_are_left_alone() {
    for (path, text) in corpus() {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("innocent")) {
            assert_eq!(fixed("--unsafe-fixes", &text), text, "{}", path.display());
        }
    }
}

#[test]
fn line_endings_survive() {
    let text = "import dpnp\r\nimport numpy\r\nw = numpy.ones(1000)\r\nx = dpnp.zeros(1000)\r\nfor _ in range(50):\r\n    \
                x += dpnp.asarray(w)\r\n";
    let after = fixed("--fix", text);
    assert!(
        after.contains("w_device = dpnp.asarray(w)\r\nfor _ in range(50):\r\n    x += w_device\r\n"),
        "{after}"
    );
}

#[test]
fn safe_and_unsafe_are_told_apart() {
    let text = "import dpnp\nx = dpnp.zeros(9)\nx[:] = 1\ndef f():\n    big = dpnp.ones((999, 999))\n    return big[0]\n";
    let safe = fixed("--fix", text);
    assert!(safe.contains("dpnp.empty(9)") && safe.ends_with("return big[0]\n"), "{safe}");
    assert!(fixed("--unsafe-fixes", text).ends_with("return big[0].copy()\n"));
}

/// Statements that meet rules, to be put together at random.
fn statement() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["x", "y", "w", "buf"]);
    let other = prop::sample::select(vec!["x", "y", "w", "host"]);
    (name, other, 0..16_u8).prop_map(|(name, other, kind)| match kind {
        0 => format!("{name} = dpnp.zeros(100)  # made\n"),
        1 => format!("{name}[:] = {other}\n"),
        2 => format!("{name} = dpnp.add({name}, {other})\n"),
        3 => format!("{name} = {name} + {other}  # sum\n"),
        4 => format!("{name} = dpnp.asarray(host)\n"),
        5 => format!("{name} += dpnp.asarray(host)\n"),
        6 => format!("{name} = numpy.sin({other})\n"),
        7 => format!("kept.append({name}.asnumpy())\n"),
        8 => format!("{name} = {other} * numpy.float64(2)\n"),
        9 => format!("{name} = dpnp.ones(100, dtype='f4')\n"),
        10 => format!("kept.append({name}[:3])\n"),
        11 => format!("{name}.fill(1); {other} = {name}\n"),
        12 => format!("del {name}\n"),
        13 => format!("host[:] = {other}\n"),
        14 => format!("{name} = dpnp.full((100,), 3, dtype='f4')\n"),
        _ => format!("print(float({name}[0]))\n"),
    })
}

fn block(depth: u32) -> BoxedStrategy<Vec<String>> {
    let line = prop_oneof![8 => statement().prop_map(|line| vec![line])];
    if depth == 0 {
        return prop::collection::vec(line, 1..5).prop_map(|parts| parts.concat()).boxed();
    }
    let headers = vec![
        "for i in range(50):\n",
        "while n < 9:\n",
        "if n > 3:\n",
        "with lock:\n",
        "for i in range(100):  # all\n",
    ];
    let nested = (prop::sample::select(headers), block(depth - 1)).prop_map(|(header, body)| {
        let mut lines = vec![header.to_owned()];
        lines.extend(body.iter().map(|line| format!("    {line}")));
        lines
    });
    prop::collection::vec(prop_oneof![3 => line, 2 => nested], 1..6).prop_map(|parts| parts.concat()).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fixes_hold_on_any_program(body in block(2), in_function in any::<bool>(), windows in any::<bool>()) {
        let mut text = "import dpnp\nimport numpy\n\nhost = numpy.ones(100)\nkept = []\nn = 0\nlock = None\n".to_owned();
        if in_function {
            text.push_str("\n\ndef work(host, n, lock):\n    kept = []\n");
        }
        for line in body {
            text.push_str(if in_function { "    " } else { "" });
            text.push_str(&line);
        }
        if windows {
            text = text.replace('\n', "\r\n");
        }
        for option in ["--fix", "--unsafe-fixes"] {
            let after = fixed(option, &text);
            prop_assert_eq!(fixable(&after, option == "--fix"), 0, "{}", after);
            prop_assert_eq!(fixed(option, &after), after);
        }
    }
}
