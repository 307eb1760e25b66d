//! Whatever the bytes, there is an answer: findings, or an error line and exit 2.

mod support;

use std::fs;

use proptest::prelude::*;
use support::{corpus, lint};

fn is_refused(args: &[&str], needle: &str) {
    let ran = lint(args, "");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.lines().any(|line| line.starts_with("error: failed to") && line.contains(needle)),
        "{}",
        ran.stderr
    );
}

#[test]
fn deep_nesting_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep.py");
    let name = path.to_str().expect("a name");
    for (open, close) in
        [("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("lambda: ", ""), ("f(", ")"), ("{1:", "}")]
    {
        fs::write(&path, format!("import dpnp\nx = {}1{}\n", open.repeat(300_000), close.repeat(300_000)))
            .expect("written");
        is_refused(&[name], "nested too deeply");
    }
    fs::write(&path, format!("import dpnp\nx = 1{}\n", " + 1".repeat(300_000))).expect("written");
    is_refused(&[name], "nested too deeply");
    // What CPython itself compiles is read.
    let body = format!(
        "import dpnp\nx = dpnp.ones(3)\ny = x{}\nz = {}\n",
        " + x".repeat(3000),
        "(".repeat(150) + "x" + &")".repeat(150)
    );
    fs::write(&path, body).expect("written");
    assert_eq!(lint(&[name], "").code, 0);
    let mut blocks = String::from("import dpnp\n");
    for depth in 0..90 {
        blocks.push_str(&format!("{}for i{depth} in range(3):\n", " ".repeat(depth)));
    }
    blocks.push_str(&format!("{}x = dpnp.ones(3)\n", " ".repeat(90)));
    fs::write(&path, blocks).expect("written");
    assert_ne!(lint(&[name], "").code, 2);
}

#[test]
fn huge_files_are_refused_without_being_read_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.py");
    fs::write(&path, format!("x = '{}'\n", "a".repeat(50_000_000))).expect("written");
    is_refused(&[path.to_str().expect("a name")], "expected at most");
    fs::write(&path, format!("import dpnp\n{}", "x = 1\n".repeat(800_000))).expect("written");
    is_refused(&[path.to_str().expect("a name")], "expected at most");
}

#[test]
fn a_long_line_is_read() {
    let text = format!("import dpnp\nx = [{}]\ny = dpnp.zeros(3)\ny[:] = 1\n", "1, ".repeat(300_000));
    let ran = lint(&["-"], &text);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
}

#[test]
fn faulty_encodings_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bytes.py");
    fs::write(&path, b"import dpnp\nx = '\xff\xfe'\n").expect("written");
    is_refused(&[path.to_str().expect("a name")], "is not UTF-8");
    fs::write(&path, b"# coding: latin-1\nimport dpnp\nx = '\xe9'\n").expect("written");
    assert_eq!(lint(&[path.to_str().expect("a name")], "").code, 0);
    fs::write(&path, b"x = 1\0\n").expect("written");
    is_refused(&[path.to_str().expect("a name")], "parse");
}

#[cfg(unix)]
#[test]
fn link_loops_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("made");
    fs::write(inner.join("a.py"), "import dpnp\n").expect("written");
    std::os::unix::fs::symlink(folder.path(), inner.join("loop")).expect("linked");
    std::os::unix::fs::symlink(folder.path().join("self.py"), folder.path().join("self.py")).expect("linked");
    is_refused(&[folder.path().to_str().expect("a name")], "loop");
}

#[test]
fn faulty_notebooks_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("n.ipynb");
    let name = path.to_str().expect("a name");
    for text in ["", "{", "[]", "{\"cells\": 3}", "\u{feff}{}"] {
        fs::write(&path, text).expect("written");
        is_refused(&[name], "read notebook");
    }
    fs::write(&path, format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000))).expect("written");
    is_refused(&[name], "read notebook");
    fs::write(&path, "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\"x = (\\n\"]}]}")
        .expect("written");
    is_refused(&[name], "cell 1:2:1");
    fs::write(&path, "{\"cells\": [{\"cell_type\": \"code\"}, 3, {\"cell_type\": \"code\", \"source\": 7}]}")
        .expect("written");
    assert_eq!(lint(&[name], "").code, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in "(import dpnp as np\n)?[ -~\n\t\u{e9}\u{3c0}]{0,200}") {
        prop_assert!(lint(&["--unsafe-fixes", "-"], &text).code <= 2);
    }

    #[test]
    fn cut_and_joined_programs_are_answered(
        first in any::<prop::sample::Index>(), second in any::<prop::sample::Index>(),
        cut in 0.0..1.0_f64, again in 0.0..1.0_f64,
    ) {
        let corpus = corpus();
        let part = |index: &prop::sample::Index, share: f64| {
            let text = &corpus[index.index(corpus.len())].1;
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let count = (lines.len() as f64 * share) as usize;
            lines[..count].concat()
        };
        let text = part(&first, cut) + &part(&second, again);
        prop_assert!(lint(&["--unsafe-fixes", "-"], &text).code <= 2);
    }
}
