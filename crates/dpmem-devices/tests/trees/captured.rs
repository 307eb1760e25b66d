//! Unpacks a machine from `testdata` into a folder of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dpmem_devices::Root;

pub(crate) struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn unpack(name: &str) -> Tree {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(format!("{name}.tree"));
        let text = std::fs::read_to_string(source).expect("a tree of that name");
        let folder = tempfile::tempdir().expect("a folder for tests");
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let (what, rest) = line.split_once(' ').expect("a word and a path");
            match what {
                "file" => {
                    let content: String = lines
                        .by_ref()
                        .take_while(|line| *line != ".")
                        .map(|line| format!("{line}\n"))
                        .collect();
                    std::fs::write(made(folder.path(), rest), content).expect("a file");
                }
                "link" => {
                    let (path, target) = rest.split_once(" -> ").expect("a path and a target");
                    std::os::unix::fs::symlink(target, made(folder.path(), path)).expect("a link");
                }
                "dir" => std::fs::create_dir_all(folder.path().join(rest)).expect("a folder"),
                "mode" => {
                    let (mode, path) = rest.split_once(' ').expect("a mode and a path");
                    let mode = u32::from_str_radix(mode, 8).expect("octal");
                    let permissions = std::fs::Permissions::from_mode(mode);
                    std::fs::set_permissions(folder.path().join(path), permissions).expect("a mode");
                }
                other => panic!("`{other}` in {name}"),
            }
        }
        Tree { folder }
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.folder.path())
    }
}

fn made(folder: &Path, inside: &str) -> PathBuf {
    let path = folder.join(inside);
    std::fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
    path
}
