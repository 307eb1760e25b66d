//! Whether OpenCL drivers are registered where the loader looks, and whether pip's CPU runtime is whole.

use super::{Machine, Status, ok, quoted, skipped};

/// The CPU runtime that pip brings.
const RUNTIME: &str = "libintelocl.so";
/// What pip calls it.
const PACKAGE: &str = "intel-opencl-rt";

/// A line of a `.icd` file: the file and the driver that it names.
struct Registered {
    file: String,
    library: String,
}

pub(super) fn icd(machine: &Machine) -> (Status, String, String) {
    if let Some(value) = machine.variable("OCL_ICD_FILENAMES") {
        return named_by_variable(machine, value);
    }
    let (found, missing): (Vec<_>, Vec<_>) =
        registered(machine).into_iter().partition(|entry| machine.library(&entry.library).is_some());
    // SYCL passes over NVIDIA's OpenCL platform.
    let usable: Vec<_> = found.iter().filter(|entry| !entry.library.contains("nvidia")).collect();
    let listed = |entries: &[Registered]| {
        let texts = entries.iter().map(|entry| format!("{} names {}", entry.file, entry.library));
        texts.collect::<Vec<_>>().join("; ")
    };
    if let [first, rest @ ..] = usable.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        if missing.is_empty() {
            return ok(format!("{} is registered{more}", first.library));
        }
        let message = format!(
            "{} is registered{more}, but of others the file is not there: {}",
            first.library,
            listed(&missing)
        );
        return (Status::Warning, message, String::new());
    }
    let message = match (missing.is_empty(), found.is_empty()) {
        (false, _) => format!("the registered OpenCL driver is not there: {}", listed(&missing)),
        (true, false) => "only NVIDIA's OpenCL driver is registered, which SYCL passes over".to_string(),
        (true, true) => "no OpenCL driver is registered".to_string(),
    };
    (Status::Failed, message, advice(machine))
}

fn named_by_variable(machine: &Machine, value: &str) -> (Status, String, String) {
    let missing: Vec<_> =
        value.split(':').filter(|name| !name.is_empty() && machine.library(name).is_none()).collect();
    if missing.is_empty() {
        return ok(format!("OCL_ICD_FILENAMES={value}"));
    }
    (
        Status::Failed,
        format!("OCL_ICD_FILENAMES names {}, which is not there", missing.join(" and ")),
        advice(machine),
    )
}

fn advice(machine: &Machine) -> String {
    match runtime(machine) {
        Some(path) => format!("export OCL_ICD_FILENAMES={}", quoted(&path)),
        None => format!("python -m pip install {PACKAGE}"),
    }
}

/// Pip's runtime, as one of the Python installation's folders has it.
fn runtime(machine: &Machine) -> Option<String> {
    let mut paths = machine.prefixes.iter().map(|prefix| format!("{prefix}/lib/{RUNTIME}"));
    paths.find(|path| std::path::Path::new(path).is_file())
}

fn registered(machine: &Machine) -> Vec<Registered> {
    let own = machine.variable("OCL_ICD_VENDORS");
    let mut folders: Vec<(crate::Root, String)> =
        vec![(machine.root.clone(), "etc/OpenCL/vendors".to_string())];
    folders.extend(
        machine
            .prefixes
            .iter()
            .map(|prefix| (crate::Root::at(prefix.as_str()), "etc/OpenCL/vendors".to_string())),
    );
    folders.extend(own.map(|folder| (crate::Root::at(folder), String::new())));
    let mut found = Vec::new();
    for (root, folder) in folders {
        for name in root.names(&folder).into_iter().filter(|name| name.ends_with(".icd")) {
            let file = format!("{folder}/{name}");
            let text = root.text(&file).unwrap_or_default();
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let file = root.path(&file).display().to_string();
            found.extend(lines.map(|line| Registered { file: file.clone(), library: line.to_string() }));
        }
    }
    found
}

pub(super) fn cpu_runtime(machine: &Machine) -> (Status, String, String) {
    let registered: Vec<_> = registered(machine).into_iter().map(|entry| entry.library).collect();
    let named = machine.variable("OCL_ICD_FILENAMES").unwrap_or_default().split(':').map(str::to_string);
    let cpu = |library: &String| library.contains("intelocl") || library.contains("pocl");
    let elsewhere = named.chain(registered).filter(cpu).find_map(|library| machine.library(&library));
    let Some(path) = runtime(machine).or(elsewhere) else {
        let message = "there is no OpenCL runtime for the CPU".to_string();
        return (Status::Warning, message, format!("python -m pip install {PACKAGE}"));
    };
    let Some(folder) = path.rsplit_once('/').map(|(folder, _)| folder) else { return skipped("") };
    // What the runtime loads by name from its own folder or the linker's.
    let missing: Vec<_> = ["libsvml.so", "libtbb.so.12"]
        .into_iter()
        .filter(|name| path.contains("intelocl") && machine.library(name).is_none())
        .filter(|name| !std::path::Path::new(&format!("{folder}/{name}")).exists())
        .collect();
    if missing.is_empty() {
        return ok(path);
    }
    let message = format!("{path} needs {}, which is not there", missing.join(" and "));
    (Status::Failed, message, format!("python -m pip install --force-reinstall {PACKAGE}"))
}
