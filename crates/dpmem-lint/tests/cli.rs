//! The command line, from the real executable in an empty environment.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const FAULTY: &str = "import dpnp\n\nx = dpnp.zeros(10)\nx[:] = 3\nfor _ in range(100):\n    y = x * 2\n";

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpmem-lint"));
    command.args(args).current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

fn run(folder: &Path, args: &[&str]) -> (i32, String, String) {
    spoken(command(folder, args).output().expect("the command runs"))
}

fn spoken(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, text).expect("written");
    }
    folder
}

#[test]
fn text_shows_the_line_with_carets() {
    let folder = folder(&[("a.py", FAULTY)]);
    let (code, stdout, stderr) = run(folder.path(), &["a.py"]);
    assert_eq!(code, 1);
    assert_eq!(
        stdout,
        "a.py:3:5: DPM305 zeros-then-overwrite (warning): what `dpnp.zeros` writes into `x` is overwritten before it is read
   |
 3 | x = dpnp.zeros(10)
   |     ^^^^^^^^^^^^^^
  = allocate without filling, `empty`
  = fixable with `--fix`

a.py:6:9: DPM301 alloc-in-loop (warning): this allocates a block of one size in every iteration and frees it again
   |
 6 |     y = x * 2
   |         ^^^^^
  = allocate `y` once before the loop and write into it: `dpnp.multiply(x, 2, out=y)`
  = fixable with `--unsafe-fixes`

"
    );
    assert_eq!(stderr, "2 findings in 1 file, 1 fixable with `--fix`, 1 more with `--unsafe-fixes`\n");
}

#[test]
fn json_has_the_agreed_keys_in_order() {
    let folder = folder(&[("a.py", FAULTY)]);
    let (code, stdout, stderr) =
        run(folder.path(), &["a.py", "--output-format", "json", "--select", "DPM305"]);
    assert_eq!((code, stderr.as_str()), (1, ""));
    let list: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let keys: Vec<&str> = list[0].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "code",
            "name",
            "severity",
            "file",
            "line",
            "column",
            "end_line",
            "end_column",
            "message",
            "advice",
            "fix"
        ]
    );
    assert_eq!(
        list[0]["fix"],
        serde_json::json!({"safety": "safe", "edits": [
            {"line": 3, "column": 10, "end_line": 3, "end_column": 15, "text": "empty"}]})
    );
    let (code, stdout, _) = run(folder.path(), &["a.py", "--output-format", "json", "--select", "DPM104"]);
    assert_eq!((code, stdout.trim()), (0, "[]"));
}

#[test]
fn github_and_sarif() {
    let folder = folder(&[("a.py", FAULTY)]);
    let (_, stdout, _) = run(folder.path(), &["a.py", "--output-format", "github", "--select", "DPM305"]);
    assert_eq!(
        stdout,
        "::warning file=a.py,line=3,endLine=3,col=5,endColumn=19,title=DPM305 zeros-then-overwrite::what `dpnp.zeros` \
         writes into `x` is overwritten before it is read; allocate without filling, `empty`\n"
    );
    let (_, stdout, _) = run(folder.path(), &["a.py", "--output-format", "sarif"]);
    let log: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "DPM305");
    assert_eq!(
        log["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().expect("an index") as usize]["id"],
        "DPM305"
    );
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startColumn"], 5);
    assert_eq!(
        result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"],
        "empty"
    );
}

#[test]
fn exit_codes() {
    let folder = folder(&[("a.py", FAULTY), ("b.py", "x = 1\n"), ("broken.py", "x = (\n")]);
    let code = |args: &[&str]| run(folder.path(), args).0;
    assert_eq!(code(&["b.py"]), 0);
    assert_eq!(code(&["a.py"]), 1);
    assert_eq!(code(&["a.py", "--exit-zero"]), 0);
    assert_eq!(code(&["a.py", "broken.py", "--exit-zero"]), 2);
    assert_eq!(code(&["missing.py"]), 2);
    assert_eq!(code(&["a.py", "--select", "DPM9"]), 2);
    assert_eq!(code(&["a.py", "--select", "DPM102"]), 0);
    assert_eq!(code(&[]), 2);
    assert_eq!(code(&["--help"]), 0);
    let (_, _, stderr) = run(folder.path(), &["broken.py"]);
    assert!(stderr.starts_with("error: failed to parse: ") && stderr.contains("`broken.py:"), "{stderr}");
}

#[test]
fn fixes_write_and_diff_does_not() {
    let folder = folder(&[("a.py", FAULTY)]);
    let read = || fs::read_to_string(folder.path().join("a.py")).expect("a text");
    let (code, stdout, stderr) = run(folder.path(), &["--diff", "a.py"]);
    assert_eq!(code, 1);
    assert!(
        stdout.contains("--- a/a.py\n+++ b/a.py\n")
            && stdout.contains("\n-x = dpnp.zeros(10)\n+x = dpnp.empty(10)\n"),
        "{stdout}"
    );
    assert!(stderr.contains("1 finding would be fixed"), "{stderr}");
    assert_eq!(read(), FAULTY);
    let (code, _, stderr) = run(folder.path(), &["--fix", "a.py"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("1 finding fixed"), "{stderr}");
    assert_eq!(read(), FAULTY.replace("zeros", "empty"));
    let (code, stdout, _) = run(folder.path(), &["--unsafe-fixes", "a.py"]);
    assert_eq!((code, stdout.as_str()), (0, ""));
    assert!(
        read().contains("y = dpnp.empty_like(x)\nfor _ in range(100):\n    dpnp.multiply(x, 2, out=y)\n"),
        "{}",
        read()
    );
}

#[test]
fn standard_input_is_a_file_without_a_name() {
    let folder = folder(&[]);
    let mut child = command(folder.path(), &["-", "--fix"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    child.stdin.take().expect("a pipe").write_all(FAULTY.as_bytes()).expect("written");
    let (code, stdout, stderr) = spoken(child.wait_with_output().expect("it ends"));
    assert_eq!(code, 1);
    assert_eq!(stdout, FAULTY.replace("zeros", "empty"));
    assert!(stderr.contains("<stdin>:6:9: DPM301"), "{stderr}");
}

#[test]
fn settings_and_ignores_are_respected() {
    let settings = "[tool.dpmem.lint]\nselect = [\"DPM3\"]\nignore = [\"DPM305\"]\nexclude = [\"old\"]\n\
                    [tool.dpmem.lint.per-file-ignores]\n\"tests/**\" = [\"DPM301\"]\n";
    let folder = folder(&[
        ("pyproject.toml", settings),
        (".gitignore", "build/\n"),
        ("a.py", FAULTY),
        ("old/a.py", FAULTY),
        ("build/a.py", FAULTY),
        ("tests/a.py", FAULTY),
        (".hidden/a.py", FAULTY),
        ("notes.txt", FAULTY),
    ]);
    let found = |args: &[&str]| -> Vec<String> {
        let (_, stdout, stderr) = run(folder.path(), args);
        let list: Vec<serde_json::Value> =
            serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
        list.iter()
            .map(|finding| {
                format!(
                    "{} {}",
                    finding["file"].as_str().expect("a file"),
                    finding["code"].as_str().expect("a code")
                )
            })
            .collect()
    };
    assert_eq!(found(&[".", "--output-format", "json"]), ["./a.py DPM301"]);
    assert_eq!(
        found(&[".", "--output-format", "json", "--select", "DPM305"]),
        ["./a.py DPM305", "./tests/a.py DPM305"]
    );
    assert_eq!(found(&["a.py", "build/a.py", "--output-format", "json", "--ignore", "DPM301"]), [""; 0]);
    assert_eq!(found(&["build/a.py", "--output-format", "json"]), ["build/a.py DPM301"]);
    fs::write(folder.path().join("pyproject.toml"), "[tool.dpmem.lint]\nselekt = []\n").expect("written");
    let (code, _, stderr) = run(folder.path(), &["a.py"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("pyproject.toml") && stderr.contains("selekt"), "{stderr}");
}

#[test]
fn notebooks_are_found_and_fixed() {
    let notebook = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \"# π\"\n   ]\n  },\n  \
        {\n   \"cell_type\": \"code\",\n   \"execution_count\": 1,\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \
        \"%matplotlib inline\\n\",\n    \"import dpnp\"\n   ]\n  },\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \
        \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"!ls\\n\",\n    \"x = dpnp.zeros(10)\\n\",\n    \"x[:] = 3\"\n   ]\n  }\n ],\n \
        \"metadata\": {\n  \"scale\": 0.1\n },\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";
    let folder = folder(&[("n.ipynb", notebook)]);
    let (code, stdout, _) = run(folder.path(), &["n.ipynb"]);
    assert_eq!(code, 1);
    assert!(stdout.starts_with("n.ipynb:cell 3:2:5: DPM305"), "{stdout}");
    let (code, _, stderr) = run(folder.path(), &["n.ipynb", "--fix"]);
    assert_eq!(code, 0, "{stderr}");
    let after = fs::read_to_string(folder.path().join("n.ipynb")).expect("a text");
    assert_eq!(after, notebook.replace("dpnp.zeros(10)", "dpnp.empty(10)"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let text = FAULTY.repeat(2000);
    let folder = folder(&[("a.py", &text)]);
    let mut child = command(folder.path(), &["a.py"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.code().is_some(), "no signal");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[test]
fn examples_of_the_pages_are_true() {
    for code in dpmem_lint::codes() {
        let doc = dpmem_lint::rule(code).expect("a rule");
        let found = |body: &str| {
            let names = "import functools\nimport math\nimport os\nimport dpctl\nimport dpnp\nimport numpy\n";
            let folder = folder(&[("x.py", &format!("{names}{}\n", body.trim()))]);
            run(folder.path(), &["x.py", "--select", code, "--output-format", "json"]).1
        };
        assert!(found(doc.example).contains(code), "{code}: the example is not found");
        assert_eq!(found(doc.instead).trim(), "[]", "{code}: what to write instead is found");
    }
}
