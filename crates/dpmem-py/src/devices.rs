//! The machine for Python: readings, what the bus shows, checks of files, programs seen from outside.

use std::collections::BTreeMap;

use dpmem_core::{DeviceReserve, Kind, Usage};
use dpmem_devices::checks::{CHECKS, Identity, Machine};
use dpmem_devices::{Effect, Reading, Root, VARIABLES, Wanted, selector};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Registers this module's classes and functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Climb>()?;
    module.add_function(wrap_pyfunction!(device_reading, module)?)?;
    module.add_function(wrap_pyfunction!(device_properties, module)?)?;
    module.add_function(wrap_pyfunction!(hook_listen, module)?)?;
    module.add_function(wrap_pyfunction!(machine_check, module)?)?;
    module.add_function(wrap_pyfunction!(machine_checks, module)?)?;
    module.add_function(wrap_pyfunction!(machine_gpus, module)?)?;
    module.add_function(wrap_pyfunction!(machine_processes, module)?)?;
    module.add_function(wrap_pyfunction!(machine_programs, module)?)?;
    module.add_function(wrap_pyfunction!(machine_variables, module)?)?;
    module.add_function(wrap_pyfunction!(selector_fault, module)?)?;
    module.add_function(wrap_pyfunction!(usage_unpublish, module)?)
}

/// (total, free, source, trust)
type ReadingParts = (Option<u64>, Option<u64>, String, &'static str);

/// What Python knows of a device whose memory is to be read.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct WantedFacts {
    r#type: String,
    integrated: Option<bool>,
    pci_address: Option<String>,
    ids: Option<(u32, u32)>,
    capacity_bytes: Option<u64>,
    sycl_free_bytes: Option<u64>,
    /// What this process is known to hold on the device.
    own_bytes: u64,
}

/// Reads a device's memory: (total, free, source, trust), free None where unknown.
#[pyfunction]
#[pyo3(signature = (facts, root = "/"))]
fn device_reading(py: Python<'_>, facts: WantedFacts, root: &str) -> ReadingParts {
    let wanted = Wanted {
        cpu: facts.r#type == "cpu",
        integrated: facts.integrated,
        address: facts.pci_address.and_then(|text| text.parse().ok()),
        ids: facts.ids,
        capacity_bytes: facts.capacity_bytes,
        sycl_free_bytes: facts.sycl_free_bytes,
    };
    let Reading { total_bytes, free_bytes, source, trust } =
        py.detach(|| dpmem_devices::reading(&Root::at(root), &wanted).bounded(facts.own_bytes));
    (total_bytes, free_bytes, source, trust.name())
}

/// What the runtime tells of a device beyond what dpctl passes on; the handle is one that `device_observe` answered.
#[pyfunction]
fn device_properties(py: Python<'_>, handle: usize) -> PyResult<Bound<'_, PyDict>> {
    let seen = py.detach(|| dpmem_hook::properties(handle));
    let answer = PyDict::new(py);
    answer.set_item("pci_address", seen.pci_address)?;
    answer.set_item("ids", seen.ids)?;
    answer.set_item("integrated", seen.host_memory)?;
    answer.set_item("sycl_free_bytes", seen.free_bytes)?;
    let uuid = seen.uuid.map(|uuid| uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    answer.set_item("uuid", uuid)?;
    Ok(answer)
}

/// Lets `device_observe` hear without recording anything. For processes of dpmem's own.
#[pyfunction]
fn hook_listen(py: Python<'_>) -> PyResult<()> {
    py.detach(dpmem_hook::listen)
        .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}

/// The GPUs that the operating system shows, as dicts.
#[pyfunction]
#[pyo3(signature = (root = "/"))]
fn machine_gpus<'py>(py: Python<'py>, root: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let found = py.detach(|| dpmem_devices::gpus(&Root::at(root)));
    let as_dict = |gpu: dpmem_devices::Gpu| {
        let dict = PyDict::new(py);
        dict.set_item("pci_address", gpu.address.to_string())?;
        dict.set_item("title", gpu.title())?;
        dict.set_item("ids", (gpu.vendor, gpu.device))?;
        dict.set_item("driver", &gpu.driver)?;
        dict.set_item("node", &gpu.render_node)?;
        dict.set_item("integrated", gpu.integrated())?;
        Ok(dict)
    };
    found.into_iter().map(as_dict).collect()
}

/// (process, PCI address, bytes on the device, bytes on the host, source) of what processes hold on devices.
#[pyfunction]
#[pyo3(signature = (pid = None, root = "/"))]
fn machine_processes(py: Python<'_>, pid: Option<u32>, root: &str) -> Vec<(u32, String, u64, u64, String)> {
    let found = py.detach(|| dpmem_devices::process_memory(&Root::at(root), pid));
    let row = |row: dpmem_devices::ProcessMemory| {
        (row.pid, row.device.to_string(), row.bytes, row.host_bytes, row.source)
    };
    found.into_iter().map(row).collect()
}

/// Name, kind, bytes and blocks now, bytes and blocks at most.
type KindUsage = (String, &'static str, u64, u64, u64, u64);

/// Name, bytes now and at most, and the limit, of what a pool has reserved on a device. Host memory has the name "host".
type PoolReserve = (String, u64, u64, Option<u64>);

/// Process, command line, whether it records, what it has in use, what its pool has reserved.
type Program = (u32, String, bool, Vec<KindUsage>, Vec<PoolReserve>);

/// What each program that publishes it has in use, and what its pool has reserved.
#[pyfunction]
#[pyo3(signature = (user, pid = None))]
fn machine_programs(py: Python<'_>, user: u32, pid: Option<u32>) -> Vec<Program> {
    let find = || {
        let folders = dpmem_devices::usage::folders(user);
        dpmem_devices::usage::programs(&Root::system(), &folders, pid)
    };
    let row = |program: dpmem_devices::usage::Program| {
        let Usage { pid, recording, devices, reserves, .. } = program.usage;
        let kinds = devices.iter().flat_map(|device| {
            let name = device.name.clone().unwrap_or_default();
            let kinds = Kind::ALL.into_iter().map(move |kind| (name.clone(), kind, device.of(kind)));
            kinds.filter(|(_, _, (now, peak))| now.count > 0 || peak.count > 0)
        });
        let kinds = kinds.map(|(name, kind, (now, peak))| {
            (name, kind.name(), now.bytes, now.count, peak.bytes, peak.count)
        });
        let reserves = reserves.into_iter().map(|DeviceReserve { name, is_host, reserve }| {
            let name = if is_host { "host".to_string() } else { name.unwrap_or_default() };
            (name, reserve.bytes, reserve.peak_bytes, reserve.limit_bytes)
        });
        (pid, program.command, recording, kinds.collect(), reserves.collect())
    };
    py.detach(find).into_iter().map(row).collect()
}

/// (name, effect, what it does) of each variable that decides which devices there are.
#[pyfunction]
fn machine_variables() -> Vec<(&'static str, &'static str, &'static str)> {
    let effect = |effect| match effect {
        Effect::Chooses => "chooses",
        Effect::Shapes => "shapes",
        Effect::Ignored => "ignored",
    };
    VARIABLES.iter().map(|variable| (variable.name, effect(variable.effect), variable.does)).collect()
}

/// What is wrong with a value of ONEAPI_DEVICE_SELECTOR, or None.
#[pyfunction]
fn selector_fault(text: &str) -> Option<String> {
    selector::fault(text)
}

/// The names of the checks that `machine_check` knows.
#[pyfunction]
fn machine_checks() -> Vec<&'static str> {
    CHECKS.iter().map(|(id, _)| *id).collect()
}

/// Runs a check of files and variables: (status, message, advice).
#[pyfunction]
#[pyo3(signature = (id, variables, prefixes, uid, groups, root = "/"))]
fn machine_check(
    py: Python<'_>,
    id: &str,
    variables: BTreeMap<String, String>,
    prefixes: Vec<String>,
    uid: u32,
    groups: Vec<u32>,
    root: &str,
) -> PyResult<(&'static str, String, String)> {
    let check =
        py.detach(|| Machine::new(Root::at(root), variables, prefixes, Identity { uid, groups }).check(id));
    let check =
        check.ok_or_else(|| pyo3::exceptions::PyValueError::new_err(format!("no check is called `{id}`")))?;
    Ok((check.status.name(), check.message, check.advice))
}

/// Removes the file through which other processes see this one.
#[pyfunction]
fn usage_unpublish() {
    dpmem_hook::unpublish();
}

/// Tells a steady climb from steps and noise.
#[pyclass(module = "dpmem._native")]
#[derive(Default)]
struct Climb(dpmem_devices::Climb);

#[pymethods]
impl Climb {
    #[new]
    fn new() -> Climb {
        Climb::default()
    }

    /// Takes a sample in: bytes per second if it climbs steadily, else None.
    fn sample(&mut self, at_s: f64, bytes: u64) -> Option<f64> {
        self.0.sample(at_s, bytes)
    }
}
