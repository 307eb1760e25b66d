"""Simulated devices, all of the matrix: dpctl's and dpnp's own tests, results, and the truth of every program."""

import json
from collections import Counter

import pytest

from simulated.fixtures import Machine, simulate
from simulated.test_machines import SMOKE
from truth.corpus import PROGRAMS, Environment
from truth.test_truth import check_program

from .environments import HERE

TIMEOUT_S = 1200
pytestmark = pytest.mark.timeout(4 * TIMEOUT_S)

#: A machine, what makes its GPU the only device there, and SYCL's adapter for it.
GPUS = {
    # Not `opencl:gpu`: with dpnp 0.20, SYCL then finds nothing at all.
    "opencl": ("opencl_only", "*:gpu", None),
    "level zero v1": ("workstation", "level_zero:gpu", "v1"),
    "level zero v2": ("workstation", "level_zero:gpu", "v2"),
}
DPCTL = [
    "test_sycl_device",
    "test_sycl_device_factory",
    "test_sycl_platform",
    "test_sycl_context",
    "test_sycl_queue",
    "test_sycl_queue_manager",
    "test_sycl_queue_memcpy",
    "test_sycl_event",
    "test_sycl_usm",
    "test_sycl_kernel_submit",
    "test_sycl_program",
    "test_sycl_timer",
    "test_raw_kernel_arg",
    "test_work_group_memory",
    "test_utils",
]
#: On the CPU device itself, with contexts of sub-devices, this one hangs in some runs.
HANGS = "test_context_multi_device"
DPNP = ["test_sum", "test_sort", "test_indexing", "test_logic", "test_nanfunctions", "test_product", "test_search"]
#: Programs that need MKL's float products or Fourier transforms, which don't run on simulated GPUs.
MKL = {
    "classes",
    "discarded_temporaries",
    "ends_with_exit_code",
    "fourier",
    "histograms_and_kmeans",
    "linear_algebra",
    "matmul_steps",
}
#: Simulated GPUs have no sub-devices.
SUB_DEVICES = {"several_contexts"}
RUNNING = [program for program in PROGRAMS if program.name not in MKL | SUB_DEVICES]


@pytest.fixture
def on(environment, tmp_path):
    """A machine with the environment, an adapter and more variables."""

    def machine(name: str, adapter: str | None = None, **variables: str) -> Machine:
        cache = {"SYCL_CACHE_PERSISTENT": "1", "SYCL_CACHE_DIR": str(tmp_path / "kernels")}
        found = Machine(name, environment.prefix, tmp_path / name, tuple(cache.items())).setting(**variables)
        return found.adapter(adapter) if adapter else found

    return machine


def own_tests(machine: Machine, folder, modules: list) -> dict:
    """Outcomes of a package's own tests; none may be lost."""
    folder.mkdir()
    outcomes = folder / "outcomes.json"
    machine = machine.setting(PYTHONPATH=str(HERE / "plugins"), SOAK_OUTCOMES=str(outcomes))
    words = ["-c", "/dev/null", f"--rootdir={folder}", "-p", "no:cacheprovider", "-q", "--tb=no", "-p", "soak_outcomes"]
    command = [str(machine.prefix / "bin/python"), "-m", "pytest", *words, "-k", f"not {HANGS}", *map(str, modules)]
    ended = machine.start(command, TIMEOUT_S)
    assert outcomes.exists(), ended.stderr[-2000:] + ended.stdout[-2000:]
    return json.loads(outcomes.read_text())["outcomes"]


def ran(outcomes: dict) -> dict:
    """Those that were not skipped."""
    return {name: all_of for name, all_of in outcomes.items() if not any("skipped" in one for one in all_of)}


@pytest.mark.parametrize("gpu", GPUS)
def test_dpctl_s_own_tests(environment, on, tmp_path, figure, gpu):
    """Which tests are skipped depends on the type of the device; what runs gives what it gives on the CPU device."""
    modules = [environment.packages / f"dpctl/tests/{name}.py" for name in DPCTL]
    name, selector, adapter = GPUS[gpu]
    cpu = ran(own_tests(on("cpu_only", ONEAPI_DEVICE_SELECTOR="*:cpu"), tmp_path / "of cpu", modules))
    here = ran(own_tests(on(name, adapter, ONEAPI_DEVICE_SELECTOR=selector), tmp_path / "of gpu", modules))
    both = cpu.keys() & here.keys()
    assert {test: here[test] for test in both if here[test] != cpu[test]} == {}
    bad = {test: all_of for test, all_of in here.items() if test not in both and set(all_of) != {"call passed"}}
    assert bad == {}
    assert len(both) > 400
    figure(
        f"dpctl's own tests, {gpu}",
        f"{len(here):,} run, {len(both):,} of them on the CPU device as well, same outcomes",
    )


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("module", DPNP)
def test_dpnp_s_own_tests(environment, on, tmp_path, figure, gpu, module):
    """Failures that the CPU device doesn't have must be for want of MKL's kernels."""
    path = environment.packages / f"dpnp/tests/{module}.py"
    name, selector, adapter = GPUS[gpu]
    cpu = ran(own_tests(on("cpu_only", ONEAPI_DEVICE_SELECTOR="*:cpu"), tmp_path / "of cpu", [path]))
    here = ran(own_tests(on(name, adapter, ONEAPI_DEVICE_SELECTOR=selector), tmp_path / "of gpu", [path]))
    both = cpu.keys() & here.keys()
    assert both
    differ = Counter(" → ".join([cpu[test][-1], here[test][-1]]) for test in both if here[test] != cpu[test])
    figure(f"dpnp's {module}, {gpu}", f"{len(both):,} on both, {dict(differ) or 'same outcomes'}")
    assert differ.total() <= len(both) // 100


@pytest.mark.parametrize("adapter", ["v1", "v2"])
@pytest.mark.parametrize("name", ["laptop", "workstation", "node", "opencl_only"])
def test_every_device_computes(on, name, adapter):
    listed = on(name, adapter).run(
        "import dpctl, json; print(json.dumps([d.filter_string for d in dpctl.get_devices()]))"
    )
    names = listed.json()
    assert len(names) > 1
    found = on(name, adapter).run(SMOKE, *(f"compute:{each}" for each in names), timeout=TIMEOUT_S).json()
    assert {each: (found["of"][each]["wrong"], found["of"][each]["random"]) for each in names} == {
        each: ([], True) for each in names
    }


@pytest.mark.parametrize("adapter", ["v1", "v2"])
@pytest.mark.parametrize("name", ["laptop", "workstation", "node"])
@pytest.mark.parametrize("program", RUNNING, ids=lambda p: p.name)
def test_truth(environment, on, tmp_path, name, adapter, program):
    variables = on(name, adapter).variables()
    check_program(program, Environment(environment.prefix), tmp_path / "truth", variables)


def test_what_needs_mkl_fails_and_says_so(on):
    """So that nobody takes it for a fault of what is being tested, and that we hear when it works."""
    ended = on("workstation").run("import dpnp; x = dpnp.ones((200, 200), dtype='f4'); print((x @ x)[0, 0])")
    assert ended.exit_code == 1
    assert "Error" in ended.stderr


def test_machines_are_all_here():
    assert {name for name, _, _ in GPUS.values()} < simulate.MACHINES.keys()
