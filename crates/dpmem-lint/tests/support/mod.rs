//! Runs the linter in this process, and reads the planted corpus.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What one run printed, and its exit code.
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `dpmem lint ARGS` with `stdin`.
pub(crate) fn lint(args: &[&str], stdin: &str) -> Ran {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let args = args.iter().map(OsString::from);
    let code = dpmem_lint::run(args, &mut stdin.as_bytes(), &mut stdout, &mut stderr);
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Ran { code, stdout: text(stdout), stderr: text(stderr) }
}

/// Findings of a text, as the JSON output has them.
pub(crate) fn findings(text: &str) -> Vec<Value> {
    let ran = lint(&["--output-format", "json", "--stdin-filename", "/nowhere/x.py", "-"], text);
    assert_ne!(ran.code, 2, "{}\n{text}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("a JSON list")
}

/// The text after fixes.
pub(crate) fn fixed(option: &str, text: &str) -> String {
    let ran = lint(&[option, "--stdin-filename", "/nowhere/x.py", "-"], text);
    assert_ne!(ran.code, 2, "{}\n{text}", ran.stderr);
    ran.stdout
}

/// The corpus: path below its root, and text.
pub(crate) fn corpus() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files = Vec::new();
    for folder in std::fs::read_dir(&root).expect("the corpus") {
        for file in std::fs::read_dir(folder.expect("a folder").path()).expect("a folder") {
            let path = file.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("a text");
            files.push((path.strip_prefix(&root).expect("below the root").to_owned(), text));
        }
    }
    files.sort();
    files
}
