use super::*;

fn parsed(words: &[&str]) -> Outcome {
    parse(words.iter().map(OsString::from))
}

fn run(words: &[&str]) -> RunOptions {
    let mut all = vec!["run"];
    all.extend(words);
    match parsed(&all) {
        Outcome::Run(options) => options,
        other => panic!("expected a run, got {other:?}"),
    }
}

fn refused(words: &[&str]) -> String {
    match parsed(words) {
        Outcome::Exit(Exit { code: 2, stdout, stderr }) if stdout.is_empty() => stderr,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn arguments(options: &RunOptions) -> Vec<&str> {
    options.arguments.iter().map(|word| word.to_str().expect("unicode")).collect()
}

#[test]
fn defaults() {
    let options = run(&["x.py"]);
    assert_eq!(options.target, Target::Script("x.py".into()));
    assert_eq!((options.json, options.stack_depth, options.summary), (None, 16, true));
    assert!(options.arguments.is_empty());
}

#[test]
fn own_options_come_before_the_program() {
    let options = run(&["--json", "r.json", "--stack-depth=0", "--no-summary", "x.py"]);
    assert_eq!(options.json.as_deref(), Some("r.json".as_ref()));
    assert_eq!((options.stack_depth, options.summary), (0, false));
    assert_eq!(run(&["--json", "-", "x.py"]).json.as_deref(), Some("-".as_ref()));
}

#[test]
fn codes_to_fail_on_are_listed_or_repeated() {
    let options = run(&["--fail-on", "DPM301,dpm201", "--fail-on=DPM403", "x.py"]);
    assert_eq!(options.fail_on, ["DPM301", "DPM201", "DPM403"]);
}

#[test]
fn what_follows_the_program_is_the_programs() {
    let theirs =
        ["--json", "theirs", "-m", "-c", "--", "--help", "-V", "--no-summary", "--stack-depth", "many", ""];
    for (program, target) in [
        (vec!["x.py"], Target::Script("x.py".into())),
        (vec!["-m", "x"], Target::Module("x".into())),
        (vec!["-c", "pass"], Target::Code("pass".into())),
        (vec!["--", "-x.py"], Target::Script("-x.py".into())),
        (vec!["-"], Target::Script("-".into())),
        (vec!["-mx"], Target::Module("x".into())),
        (vec!["-cpass"], Target::Code("pass".into())),
        (vec!["-cb'\u{e9}'"], Target::Code("b'\u{e9}'".into())),
        (vec!["-c", "-1"], Target::Code("-1".into())),
        (vec!["-c", ""], Target::Code("".into())),
    ] {
        let words: Vec<&str> = program.iter().copied().chain(theirs).collect();
        let options = run(&words);
        assert_eq!(options.target, target, "{words:?}");
        assert_eq!(arguments(&options), theirs, "{words:?}");
        assert_eq!((options.json, options.stack_depth, options.summary), (None, 16, true), "{words:?}");
    }
}

#[test]
fn an_attached_program_may_follow_options() {
    let options = run(&["--no-summary", "--json", "r.json", "--stack-depth=3", "-mx", "--json", "theirs"]);
    assert_eq!(options.target, Target::Module("x".into()));
    assert_eq!((options.json.as_deref(), options.stack_depth), (Some("r.json".as_ref()), 3));
    assert_eq!(arguments(&options), ["--json", "theirs"]);
    assert_eq!(arguments(&run(&["x.py", "-mx", "-cy"])), ["-mx", "-cy"]);
}

#[test]
fn words_need_not_be_unicode() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(vec![b'\xff', b'.', b'p', b'y']);
    match parse(["run".into(), odd.clone(), odd.clone()]) {
        Outcome::Run(options) => {
            assert_eq!(options.target, Target::Script(odd.clone()));
            assert_eq!(options.arguments, [odd]);
        }
        other => panic!("expected a run, got {other:?}"),
    }
}

#[test]
fn refusals_say_what_came_and_what_was_expected() {
    for (words, expected) in [
        (vec!["run", "--cache", "x.py"], "unexpected argument '--cache'"),
        (vec!["run", "--jsn", "r", "x.py"], "--json"),
        (vec!["run", "-u", "x.py"], "unexpected argument '-u'"),
        (vec!["run", "--stack-depth", "129", "x.py"], "from 0 to 128"),
        (vec!["run", "--stack-depth", "deep", "x.py"], "'deep'"),
        (vec!["run", "--fail-on", "DPM301,DPM999", "x.py"], "'DPM999'"),
        (vec!["run", "--fail-on", "DPM402", "x.py"], "'DPM402'"),
        (vec!["run", "--json"], "'--json <FILE>'"),
        (vec!["run", "-m"], "'-m <MODULE> [ARGS]...'"),
        (vec!["run"], "no program was named"),
        (vec!["run", "--no-summary"], "no program was named"),
        (vec!["rum", "x.py"], "'rum'"),
    ] {
        let text = refused(&words);
        assert!(text.contains(expected), "{words:?}: {text}");
        assert!(text.starts_with("dpmem"), "{words:?}: {text}");
        assert!(text.ends_with('\n'), "{words:?}: {text}");
    }
    assert!(refused(&[]).contains("Usage: dpmem"));
}

#[test]
fn the_linter_reads_its_own_arguments() {
    for words in [vec!["--help"], vec!["a.py", "--fix"], vec!["--select", "DPM301", "-"], vec![]] {
        let mut all = vec!["lint"];
        all.extend(&words);
        assert_eq!(parsed(&all), Outcome::Lint(words.iter().map(OsString::from).collect()));
    }
}

#[test]
fn the_machine_is_looked_at() {
    use crate::machine::Format;
    match parsed(&["devices", "--json"]) {
        Outcome::Devices(options) => assert_eq!((options.json, options.probe), (true, false)),
        other => panic!("expected devices, got {other:?}"),
    }
    match parsed(&[
        "doctor",
        "--only",
        "opencl.icd",
        "--only",
        "env.selector",
        "--skip",
        "x",
        "--bundle",
        "b.zip",
    ]) {
        Outcome::Doctor(options) => {
            assert_eq!(
                (options.only, options.skip),
                (vec!["opencl.icd".into(), "env.selector".into()], vec!["x".into()])
            );
            assert_eq!(options.bundle.as_deref(), Some("b.zip".as_ref()));
        }
        other => panic!("expected doctor, got {other:?}"),
    }
    match parsed(&["watch", "--interval-ms", "100", "--count", "3", "--format", "csv", "--pid", "7"]) {
        Outcome::Watch(options) => {
            assert_eq!((options.interval_ms, options.count, options.pid), (100, Some(3), Some(7)));
            assert_eq!(options.format, Format::Csv);
        }
        other => panic!("expected watch, got {other:?}"),
    }
    for (words, expected) in [
        (vec!["watch", "--count", "0"], "--count"),
        (vec!["watch", "--interval-ms", "1"], "10..=86400000"),
        (vec!["watch", "--format", "xml"], "table, csv, json"),
        (vec!["devices", "gpu"], "'gpu'"),
    ] {
        let text = refused(&words);
        assert!(text.contains(expected), "{words:?}: {text}");
    }
}

#[test]
fn a_plan_is_asked_for() {
    let words = ["plan", "jobs.stars:Fit.chunk", "a*.npy", "--budget", "0.5", "--device", "gpu", "--json"];
    match parsed(&words) {
        Outcome::Plan(options) => {
            assert_eq!(
                (options.function.module.as_str(), options.function.name.as_str()),
                ("jobs.stars", "Fit.chunk")
            );
            assert_eq!((options.source, options.budget), (OsString::from("a*.npy"), 0.5));
            assert_eq!((options.device.as_deref(), options.json), (Some("gpu"), true));
        }
        other => panic!("expected a plan, got {other:?}"),
    }
    match parsed(&["plan", "a:f", "x.npy"]) {
        Outcome::Plan(options) => {
            assert_eq!((options.budget, options.device, options.json), (0.6, None, false))
        }
        other => panic!("expected a plan, got {other:?}"),
    }
    for (words, expected) in [
        (vec!["plan", "a.py", "x.npy"], "expected a module and a function"),
        (vec!["plan", ":f", "x.npy"], "expected a module and a function"),
        (vec!["plan", "a:", "x.npy"], "expected a module and a function"),
        (vec!["plan", "a:f"], "<SOURCE>"),
        (vec!["plan", "a:f", "x.npy", "--budget", "0"], "above 0 and at most 1"),
        (vec!["plan", "a:f", "x.npy", "--budget", "60%"], "above 0 and at most 1"),
        (vec!["plan", "a:f", "x.npy", "--budget", "nan"], "above 0 and at most 1"),
    ] {
        let text = refused(&words);
        assert!(text.contains(expected), "{words:?}: {text}");
    }
}

#[test]
fn a_rule_is_explained_and_an_unknown_one_refused() {
    match parsed(&["rule", "dpm301"]) {
        Outcome::Exit(Exit { code: 0, stdout, .. }) => assert!(stdout.contains("alloc-in-loop"), "{stdout}"),
        other => panic!("expected a text, got {other:?}"),
    }
    let refusal = refused(&["rule", "DPM999"]);
    assert!(refusal.contains("got `DPM999`") && refusal.contains("DPM301"), "{refusal}");
}

#[test]
fn version_is_data() {
    let expected = format!("dpmem {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        parsed(&["--version"]),
        Outcome::Exit(Exit { code: 0, stdout: expected, stderr: String::new() })
    );
}

#[test]
fn help_is_as_recorded() {
    for (words, recorded) in [
        (["--help"].as_slice(), include_str!("../tests/help/dpmem.txt")),
        (["run", "--help"].as_slice(), include_str!("../tests/help/run.txt")),
        (["devices", "--help"].as_slice(), include_str!("../tests/help/devices.txt")),
        (["doctor", "--help"].as_slice(), include_str!("../tests/help/doctor.txt")),
        (["watch", "--help"].as_slice(), include_str!("../tests/help/watch.txt")),
        (["plan", "--help"].as_slice(), include_str!("../tests/help/plan.txt")),
    ] {
        match parsed(words) {
            Outcome::Exit(Exit { code: 0, stdout, stderr }) => {
                assert_eq!(stdout, recorded);
                assert_eq!(stderr, "");
            }
            other => panic!("expected help, got {other:?}"),
        }
    }
}

#[test]
fn pool_and_limit_are_read_and_a_bad_size_is_told() {
    let options = run(&["--pool", "--limit", "4GiB", "x.py"]);
    assert!(options.pool);
    assert_eq!(options.limit.as_deref(), Some("4GiB"));
    let options = run(&["x.py", "--pool"]);
    assert!(!options.pool && options.limit.is_none(), "what follows the script is the program's");
    let text = refused(&["run", "--limit", "much", "x.py"]);
    assert!(text.contains("expected a size such as `4GB`") && text.contains("`much`"), "{text}");
}
