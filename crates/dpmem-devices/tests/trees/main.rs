//! Captured machines: what is read of each, and what the checks say.

mod captured;

use std::collections::BTreeMap;

use captured::Tree;
use dpmem_devices::checks::{CHECKS, Check, Identity, Machine, Status};
use dpmem_devices::{Reading, Trust, Wanted, gpus, host, process_memory, reading};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn at(address: &str) -> Wanted {
    Wanted { address: Some(address.parse().expect("an address")), ..Wanted::default() }
}

fn check(tree: &Tree, id: &str, identity: Identity) -> Check {
    Machine::new(tree.root(), BTreeMap::new(), Vec::new(), identity).check(id).expect("a check of that name")
}

fn stranger() -> Identity {
    Identity { uid: 4_000_000, groups: vec![4_000_000] }
}

#[test]
fn a_discrete_i915_card() {
    let tree = Tree::unpack("i915-discrete");
    let found = gpus(&tree.root());
    assert_eq!(found.len(), 1, "a bridge is no GPU: {found:?}");
    let gpu = &found[0];
    assert_eq!((gpu.vendor, gpu.device, gpu.driver.as_deref()), (0x8086, 0x56a0, Some("i915")));
    assert_eq!((gpu.render_node.as_deref(), gpu.integrated()), (Some("renderD128"), Some(false)));
    let seen = reading(&tree.root(), &at("0000:03:00.0"));
    assert_eq!((seen.free_bytes, seen.trust), (None, Trust::Unknown), "a captured tree has no driver to ask");
    for id in ["levelzero.loader", "levelzero.driver", "opencl.icd"] {
        assert_eq!(check(&tree, id, stranger()).status, Status::Ok, "{id}");
    }
    let privilege = check(&tree, "sysman.privilege", stranger());
    assert_eq!(privilege.status, Status::Warning);
    assert!(privilege.advice.contains("setcap cap_perfmon+ep"), "{}", privilege.advice);
}

#[test]
fn a_client_is_counted_once_however_often_it_is_open() {
    let tree = Tree::unpack("i915-discrete");
    let rows = process_memory(&tree.root(), None);
    let seen: Vec<_> = rows.iter().map(|row| (row.pid, row.bytes, row.host_bytes)).collect();
    assert_eq!(
        seen,
        [(4242, 1024 * MIB, 0), (4243, 512 * KIB, 0)],
        "the inherited client counts for the first"
    );
    let alone = process_memory(&tree.root(), Some(4243));
    assert_eq!(alone[0].bytes, 1024 * MIB + 512 * KIB, "on its own it holds both");
    assert_eq!(alone[0].source, "i915 fdinfo");
}

#[test]
fn an_integrated_gpu_has_the_hosts_memory() {
    let tree = Tree::unpack("i915-integrated");
    let seen = reading(&tree.root(), &at("0000:00:02.0"));
    let expected = Reading::estimate(16_000_000 * KIB, 8_000_000 * KIB, "meminfo MemAvailable");
    assert_eq!(seen, expected);
    let part = |bytes| reading(&tree.root(), &Wanted { capacity_bytes: Some(bytes), ..at("0000:00:02.0") });
    let of = |reading: Reading| (reading.total_bytes, reading.free_bytes);
    assert_eq!(
        of(part(12_000_000 * KIB)),
        (Some(12_000_000 * KIB), Some(8_000_000 * KIB)),
        "it may have just a part"
    );
    assert_eq!(of(part(4_000_000 * KIB)), (Some(4_000_000 * KIB), Some(4_000_000 * KIB)));
    assert_eq!(part(20_000_000 * KIB), expected);
    let rows = process_memory(&tree.root(), None);
    assert_eq!((rows[0].pid, rows[0].bytes, rows[0].host_bytes), (77, 0, 64 * MIB));
    let denied = check(&tree, "drm.permission", stranger());
    assert_eq!(denied.status, Status::Failed, "{denied:?}");
    assert!(denied.advice.starts_with("sudo usermod -aG "), "{}", denied.advice);
    assert_eq!(check(&tree, "drm.permission", Identity::default()).status, Status::Ok, "the superuser may");
    assert_eq!(check(&tree, "levelzero.driver", stranger()).status, Status::Failed);
    assert_eq!(check(&tree, "sysman.privilege", stranger()).status, Status::Skipped);
}

#[test]
fn xe_says_its_size_in_sysfs() {
    let tree = Tree::unpack("xe-two-tiles");
    assert_eq!(gpus(&tree.root()).len(), 1, "an NPU is no GPU");
    let seen = reading(&tree.root(), &at("0000:29:00.0"));
    assert_eq!((seen.total_bytes, seen.free_bytes), (Some(128 * GIB), None));
    let by_ids = Wanted { ids: Some((0x8086, 0x0bd5)), ..Wanted::default() };
    assert_eq!(reading(&tree.root(), &by_ids), seen, "found by its ids, as there is just one");
    let row = &process_memory(&tree.root(), None)[0];
    assert_eq!((row.bytes, row.host_bytes), (2 * MIB, 8 * MIB), "vram0 and vram1 together");
    assert_eq!(check(&tree, "sysman.privilege", stranger()).status, Status::Ok);
    let missing = check(&tree, "drm.permission", stranger());
    assert_eq!((missing.status, missing.message.contains("renderD129")), (Status::Failed, true));
}

#[test]
fn a_node_is_enough_where_the_bus_is_not_shown() {
    let tree = Tree::unpack("node-without-bus");
    let found = gpus(&tree.root());
    assert_eq!((found.len(), found[0].address.to_string().as_str()), (1, "0000:03:00.0"));
    assert_eq!((found[0].driver.as_deref(), found[0].device), (Some("i915"), 0x56a0));
    let loader = check(&tree, "levelzero.loader", stranger());
    assert_eq!(loader.status, Status::Failed, "{loader:?}");
}

#[test]
fn sycl_is_believed_only_where_it_says_something() {
    let tree = Tree::unpack("i915-discrete");
    let wanted =
        |free| Wanted { capacity_bytes: Some(GIB), sycl_free_bytes: Some(free), ..at("0000:03:00.0") };
    assert_eq!(
        reading(&tree.root(), &wanted(GIB)).free_bytes,
        None,
        "all free to the unprivileged is no news"
    );
    assert_eq!(reading(&tree.root(), &wanted(MIB)).free_bytes, Some(MIB));
    assert_eq!(reading(&tree.root(), &wanted(2 * GIB)).free_bytes, None, "more than there is");
}

#[test]
fn a_containers_limit_is_what_counts() {
    let tree = Tree::unpack("container-cgroup");
    let seen = host::reading(&tree.root(), None).expect("well-formed");
    assert_eq!(
        (seen.total_bytes, seen.free_bytes),
        (Some(4 * GIB), Some(GIB + GIB / 2)),
        "file cache can go"
    );
    assert_eq!(seen.source, "control group /sys/fs/cgroup");
    let devices = check(&tree, "container.devices", stranger());
    assert_eq!(devices.status, Status::Failed);
    assert!(devices.advice.contains("--device /dev/dri"), "{}", devices.advice);
}

#[test]
fn a_limit_further_up_counts_too() {
    let tree = Tree::unpack("cgroup-v1-nested");
    let seen = host::reading(&tree.root(), None).expect("well-formed");
    assert_eq!((seen.total_bytes, seen.free_bytes), (Some(GIB), Some(73_741_824)));
    assert_eq!(seen.source, "control group /sys/fs/cgroup/memory/batch");
}

#[test]
fn other_vendors() {
    let tree = Tree::unpack("amdgpu-nvidia");
    let seen = reading(&tree.root(), &at("0000:0a:00.0"));
    assert_eq!((seen.free_bytes, seen.trust), (Some(16_000_000_000), Trust::Exact));
    let nvidia = reading(&tree.root(), &at("0000:0b:00.0"));
    assert_eq!(nvidia.free_bytes, None, "NVML tells of its own machine only");
    let icd = check(&tree, "opencl.icd", stranger());
    assert_eq!(icd.status, Status::Failed);
    assert!(icd.message.contains("NVIDIA"), "{}", icd.message);
}

#[test]
fn a_broken_tree_gives_errors_and_no_number() {
    let tree = Tree::unpack("broken");
    let root = tree.root();
    let found: Vec<_> = gpus(&root).iter().map(|gpu| gpu.address.to_string()).collect();
    assert_eq!(found, ["0000:05:00.0"]);
    assert!(host::reading(&root, None).is_err());
    assert_eq!(host::limits(&root, None), []);
    let cpu = reading(&root, &Wanted { cpu: true, capacity_bytes: Some(7), ..Wanted::default() });
    assert_eq!((cpu.total_bytes, cpu.free_bytes, cpu.trust), (Some(7), None, Trust::Unknown));
    let amd = reading(&root, &at("0000:05:00.0"));
    assert_eq!((amd.free_bytes, amd.trust), (None, Trust::Unknown), "more used than there is: {amd:?}");
    assert_eq!(process_memory(&root, None), []);
    let icd = check(&tree, "opencl.icd", stranger());
    assert!(icd.message.contains("/opt/nowhere/libgone.so"), "{}", icd.message);
    for (id, _) in CHECKS {
        let _ = check(&tree, id, stranger());
    }
}

#[test]
fn variables_are_checked_without_a_machine() {
    let tree = Tree::unpack("cgroup-v1-nested");
    let with = |name: &str, value: &str, id: &str| {
        let variables = BTreeMap::from([(name.to_string(), value.to_string())]);
        Machine::new(tree.root(), variables, Vec::new(), stranger()).check(id).expect("a check of that name")
    };
    let malformed = with("ONEAPI_DEVICE_SELECTOR", "gpu", "env.selector");
    assert_eq!(malformed.status, Status::Failed);
    assert_eq!(with("ONEAPI_DEVICE_SELECTOR", "*:gpu", "env.selector").status, Status::Ok);
    let ignored = with("SYCL_DEVICE_FILTER", "level_zero:gpu:0", "env.ignored-variables");
    assert_eq!(ignored.status, Status::Warning);
    assert_eq!(ignored.advice, "unset SYCL_DEVICE_FILTER; export ONEAPI_DEVICE_SELECTOR=level_zero:gpu");
    let gone = with("OCL_ICD_FILENAMES", "/opt/nowhere/libgone.so", "opencl.icd");
    assert_eq!(gone.status, Status::Failed);
    assert_eq!(gone.advice, "python -m pip install intel-opencl-rt");
}

#[test]
fn pips_runtime_is_advised_where_it_lies() {
    let tree = Tree::unpack("cgroup-v1-nested");
    let prefix = tempfile::tempdir().expect("a folder for tests");
    let library = prefix.path().join("lib/libintelocl.so");
    std::fs::create_dir(prefix.path().join("lib")).expect("a folder");
    std::fs::write(&library, "").expect("a file");
    let prefixes = vec![prefix.path().display().to_string()];
    let bare = Machine::new(tree.root(), BTreeMap::new(), prefixes.clone(), stranger());
    let icd = bare.check("opencl.icd").expect("known");
    assert_eq!(icd.advice, format!("export OCL_ICD_FILENAMES={}", library.display()));
    let value = icd.advice.rsplit('=').next().expect("a value").to_string();
    let mended = BTreeMap::from([("OCL_ICD_FILENAMES".to_string(), value)]);
    let icd = Machine::new(tree.root(), mended, prefixes, stranger()).check("opencl.icd").expect("known");
    assert_eq!(icd.status, Status::Ok, "its own advice mends it");
}
