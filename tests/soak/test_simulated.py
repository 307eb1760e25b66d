"""Simulated devices, all of the matrix: dpctl's and dpnp's own tests, results, and the truth of every program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

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
#: Arithmetic, reductions, sorting, indexing, random numbers; of large modules each so manieth test, by its name.
DPNP = {
    "test_binary_ufuncs": 2,
    "test_indexing": 4,
    "test_logic": 2,
    "test_nanfunctions": 3,
    "test_random": 1,
    "test_random_state": 1,
    "test_search": 1,
    "test_sort": 1,
    "test_sum": 8,
}
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
def on(environment, tmp_path, simulated_kernels):
    """A machine with the environment, an adapter and more variables."""

    def machine(name: str, adapter: str | None = None, **variables: str) -> Machine:
        cache = {"SYCL_CACHE_PERSISTENT": "1", "SYCL_CACHE_DIR": str(simulated_kernels)}
        found = Machine(name, environment.prefix, tmp_path / name, tuple(cache.items())).setting(**variables)
        return found.adapter(adapter) if adapter else found

    return machine


@dataclass(frozen=True)
class Outcomes:
    """How a package's own tests ended on a device, those left out that are skipped there; and what failures said."""

    ended: dict[str, list[str]]
    said: dict[str, list[str]]

    def unlike(self, cpu: Outcomes) -> dict:
        """Tests that end otherwise than on the CPU device, or badly where the CPU device skips them."""
        badly = {test for test in self.ended.keys() - cpu.ended.keys() if set(self.ended[test]) != {"call passed"}}
        other = {test for test in self.ended.keys() & cpu.ended.keys() if self.ended[test] != cpu.ended[test]}
        return {test: (cpu.ended.get(test), self.ended[test], self.said.get(test)) for test in badly | other}


def own_tests(machine: Machine, folder: Path, modules: list[Path], share: int) -> Outcomes:
    """Run a package's own tests, or each `share`-th of them; none may be lost."""
    folder.mkdir()
    outcomes = folder / "outcomes.json"
    machine = machine.setting(PYTHONPATH=str(HERE / "plugins"), SOAK_OUTCOMES=str(outcomes), SOAK_SHARE=str(share))
    words = [
        "-c",
        "/dev/null",
        f"--rootdir={folder}",
        "-p",
        "no:cacheprovider",
        "-q",
        "--tb=short",
        "-p",
        "soak_outcomes",
    ]
    command = [str(machine.prefix / "bin/python"), "-m", "pytest", *words, "-k", f"not {HANGS}", *map(str, modules)]
    ended = machine.start(command, TIMEOUT_S)
    assert outcomes.exists(), ended.stderr[-2000:] + ended.stdout[-2000:]
    found = json.loads(outcomes.read_text())
    ran = {name: all_of for name, all_of in found["outcomes"].items() if not any("skipped" in one for one in all_of)}
    assert ran
    return Outcomes(ran, found["said"])


@pytest.fixture
def compare(environment, on, tmp_path, figure):
    """Runs test modules on the CPU device and on each simulated GPU; what ends otherwise there."""

    def run(what: str, modules: list[str], share: int = 1) -> dict[str, dict]:
        paths = [environment.packages / f"{module}.py" for module in modules]
        cpu = own_tests(on("cpu_only", ONEAPI_DEVICE_SELECTOR="*:cpu"), tmp_path / "of cpu", paths, share)
        unlike = {}
        for gpu, (name, selector, adapter) in GPUS.items():
            machine = on(name, adapter, ONEAPI_DEVICE_SELECTOR=selector)
            here = own_tests(machine, tmp_path / f"of {gpu}", paths, share)
            unlike[gpu] = here.unlike(cpu)
            both = len(here.ended.keys() & cpu.ended.keys())
            figure(
                f"{what}, {gpu}", f"{len(here.ended):,} run, {both:,} on the CPU too, {len(unlike[gpu])} unlike there"
            )
        return {gpu: tests for gpu, tests in unlike.items() if tests}

    return run


def test_dpctl_s_own_tests(compare):
    """Which tests are skipped depends on the type of the device."""
    assert compare("dpctl's own tests", [f"dpctl/tests/{name}" for name in DPCTL]) == {}


@pytest.mark.parametrize("module", DPNP)
def test_dpnp_s_own_tests(compare, module):
    assert compare(f"dpnp's {module}", [f"dpnp/tests/{module}"], DPNP[module]) == {}


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
