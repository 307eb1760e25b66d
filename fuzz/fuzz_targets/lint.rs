//! Any bytes through the parser boundary, the rules and the fixes of the linter.
//!
//! The first byte chooses between a module and a notebook. Must hold: no panic, exit code 0, 1 or 2, a fixed module
//! parses, and fixing it again changes nothing. Seeds: `crates/dpmem-lint/tests/corpus`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fn lint(name: &str, input: &[u8]) -> (u8, Vec<u8>) {
    let args = ["--unsafe-fixes", "--stdin-filename", name, "-"].map(Into::into);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let code = dpmem_lint::run(args, &mut &*input, &mut stdout, &mut stderr);
    assert!(code <= 2);
    assert!(code != 2 || !stderr.is_empty(), "a refusal says why");
    (code, stdout)
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, text)) = data.split_first() else { return };
    let name = if kind % 4 == 0 { "/fuzz/x.ipynb" } else { "/fuzz/x.py" };
    let (code, fixed) = lint(name, text);
    if code == 2 {
        return;
    }
    let (code, again) = lint(name, &fixed);
    assert_ne!(code, 2, "a fix broke the file");
    assert_eq!(fixed, again, "a fix is not idempotent");
});
