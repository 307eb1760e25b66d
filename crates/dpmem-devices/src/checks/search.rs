//! Where the dynamic linker would find a library, without loading it.

use super::Machine;

const SYSTEM: &[&str] = &[
    "lib",
    "lib64",
    "usr/lib",
    "usr/lib64",
    "usr/local/lib",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/wsl/lib",
];

impl Machine {
    /// Where a library is: the file itself for an absolute name, else in the linker's folders, in the Python
    /// installation's, or in the linker's cache.
    pub(super) fn library(&self, name: &str) -> Option<String> {
        if name.starts_with('/') {
            // Absolute names in a captured tree mean that tree, but a Python installation's lie outside it.
            let there = self.root.exists(name) || std::path::Path::new(name).exists();
            return there.then(|| name.to_string());
        }
        let own = self
            .variable("LD_LIBRARY_PATH")
            .unwrap_or_default()
            .split(':')
            .filter(|folder| !folder.is_empty());
        let python = self.prefixes.iter().map(|prefix| format!("{prefix}/lib"));
        for folder in own.map(str::to_string).chain(python) {
            let path = format!("{folder}/{name}");
            if std::path::Path::new(&path).exists() {
                return Some(path);
            }
        }
        let system = SYSTEM.iter().map(|folder| format!("{folder}/{name}"));
        let found = system.into_iter().find(|path| self.root.exists(path));
        found.map(|path| format!("/{path}")).or_else(|| self.cached(name))
    }

    /// The path that the linker's cache has for a name.
    fn cached(&self, name: &str) -> Option<String> {
        let cache = self.root.text("etc/ld.so.cache").ok()?;
        let path =
            cache.split('\0').find(|text| text.starts_with('/') && text.ends_with(&format!("/{name}")))?;
        self.root.exists(path).then(|| path.to_string())
    }
}
