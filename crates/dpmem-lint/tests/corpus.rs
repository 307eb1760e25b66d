//! Every planted fault is found at its exact range, and nothing else is.
//!
//! A file marks what it expects at the end of the line: `#! DPM301 a + b` is a finding of that code whose range is
//! the text `a + b` of this line.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use support::{corpus, findings};

/// Line, code, text of the range.
type Expected = (usize, String, String);

fn planted(text: &str) -> Vec<Expected> {
    let mut planted = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for mark in line.split("#! ").skip(1) {
            let (code, range) = mark.trim().split_once(' ').expect("a code and a text");
            planted.push((number + 1, code.to_owned(), range.trim().to_owned()));
        }
    }
    planted.sort();
    planted
}

fn found(text: &str) -> Vec<Expected> {
    let lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let mut found: Vec<Expected> = findings(text)
        .iter()
        .map(|finding| {
            let number = |key: &str| finding[key].as_u64().expect("a number") as usize;
            assert_eq!(number("line"), number("end_line"), "corpus findings are on one line");
            let line = &lines[number("line") - 1];
            let range: String = line[number("column") - 1..number("end_column") - 1].iter().collect();
            (number("line"), finding["code"].as_str().expect("a code").to_owned(), range)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn planted_faults_are_found_at_their_ranges_and_nothing_else() {
    let mut faults = Vec::new();
    for (path, text) in corpus() {
        let (planted, found) = (planted(&text), found(&text));
        if planted != found {
            faults.push(format!("{}\n  planted {planted:?}\n  found   {found:?}", path.display()));
        }
        let name = path.file_name().expect("a name").to_string_lossy();
        assert_eq!(name.starts_with("innocent"), planted.is_empty(), "{name} is named for what it holds");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_rule_has_enough_variants() {
    let files = corpus();
    assert!(files.len() >= 120, "{} files", files.len());
    let mut variants: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (path, _) in &files {
        let folder = path.components().next().expect("a folder").as_os_str().to_string_lossy().into_owned();
        let faulty = path.file_name().expect("a name").to_string_lossy().starts_with("faulty");
        let count = variants.entry(folder).or_default();
        if faulty {
            count.0 += 1;
        } else {
            count.1 += 1;
        }
    }
    for code in dpmem_lint::codes() {
        let (faulty, innocent) = variants.get(code).copied().unwrap_or_default();
        assert!(faulty >= 5 && innocent >= 4, "{code}: {faulty} faulty, {innocent} innocent");
    }
}

#[test]
fn line_endings_and_a_byte_order_mark_change_nothing() {
    for (path, text) in corpus() {
        let expected = found(&text);
        assert_eq!(found(&text.replace('\n', "\r\n")), expected, "{}", path.display());
        let marked: Vec<Expected> = findings(&format!("\u{feff}{text}"))
            .iter()
            .map(|finding| {
                (
                    finding["line"].as_u64().expect("a line") as usize,
                    finding["code"].as_str().expect("a code").to_owned(),
                    String::new(),
                )
            })
            .collect();
        let codes = |list: &[Expected]| -> BTreeSet<(usize, String)> {
            list.iter().map(|(line, code, _)| (*line, code.clone())).collect()
        };
        assert_eq!(codes(&marked), codes(&expected), "{}", path.display());
    }
}
