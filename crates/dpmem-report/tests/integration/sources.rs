//! Source text from real files.

use std::path::PathBuf;

use dpmem_report::{FileSources, SourceLines};

fn fixture(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name).to_string_lossy().into_owned()
}

#[test]
fn lines_count_from_one() {
    let file = fixture("program.py");
    assert_eq!(FileSources.line(&file, 1).as_deref(), Some("import dpnp"));
    assert_eq!(FileSources.line(&file, 3).as_deref(), Some("kept = [dpnp.ones(8)]"));
}

#[test]
fn what_cannot_be_read_has_no_source_text() {
    let file = fixture("program.py");
    assert_eq!(FileSources.line(&file, 0), None);
    assert_eq!(FileSources.line(&file, 4), None);
    assert_eq!(FileSources.line(&file, u32::MAX), None);
    assert_eq!(FileSources.line(&fixture("missing.py"), 1), None);
    assert_eq!(FileSources.line(&fixture(""), 1), None);
    assert_eq!(FileSources.line("<string>", 1), None);
    assert_eq!(FileSources.line("", 1), None);
    assert_eq!(FileSources.line("a\0b", 1), None);
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_read() {
    assert_eq!(FileSources.line("/dev/zero", 1), None);
}

#[test]
fn text_that_is_not_utf8_is_still_shown() {
    assert_eq!(FileSources.line(&fixture("latin1.py"), 1).as_deref(), Some("gr\u{fffd}n = 1"));
}
