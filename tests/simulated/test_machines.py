"""Each simulated machine: what dpctl lists, the default, right results, and memory counted to the byte.

The long matrix (both environments, both adapters, dpctl's own tests) is in `tests/soak/test_simulated.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .fixtures import Machine, older_if_there

SMOKE = Path(__file__).parent / "programs/smoke.py"
GIB = 1 << 30
ARC = ["Intel(R) Arc(TM) A770 Graphics", 16 * GIB, 4 * GIB]
MAX = ["Intel(R) Data Center GPU Max 1550", 64 * GIB, 64 * GIB]
LIST = "import dpctl, json; print(json.dumps([d.filter_string for d in dpctl.get_devices()]))"


#: Level Zero's adapters keep some freed memory for themselves; without that, every byte is accounted for.
NO_POOL = {"UR_L0_DISABLE_USM_ALLOCATOR": "1"}


def check(machine: Machine, gpus: dict[str, list], measured: dict[str, int], default: str, compute: list[str]) -> dict:
    """Run the smoke program: see what is listed, compute on some devices, and measure memory on some, which are given
    with their number among the simulated devices."""
    words = [f"compute:{name}" for name in compute] + [f"memory:{name}={measured[name]}" for name in measured]
    found = machine.run(SMOKE, *words).json()
    listed = {name: facts for name, *facts in found["devices"]}
    assert {name: facts for name, facts in listed.items() if name != "opencl:cpu:0"} == gpus
    assert "opencl:cpu:0" in listed
    assert (found["default"], found["array"]) == (default, default)
    for name in compute:
        assert found["of"][name]["wrong"] == []
        assert found["of"][name]["random"] is True
    for name in measured:
        check_memory(found["of"][name], gpus[name][1] // GIB)
    return found


def check_memory(of: dict, gibibytes: int) -> None:
    assert of["ledger"] == of["used"]
    assert of["used"][2] - of["used"][1] == 5_000_001
    assert of["used"][3] == of["used"][0]
    assert of["too large"] == of["full"] == of["others took it"] == "refused"
    assert of["filled_gib"] == gibibytes
    assert of["room again"] is None
    assert of["ordered"] == [True, False, True]


ARC_INTEGRATED = ["Intel(R) Arc(TM) Graphics", 12 * GIB, 4 * GIB]


def two_views(facts: list) -> dict[str, list]:
    """A GPU that both drivers show."""
    return {"level_zero:gpu:0": facts, "opencl:gpu:0": facts}


def test_laptop(laptop: Machine) -> None:
    machine = laptop.setting(**NO_POOL)
    check(machine, two_views(ARC_INTEGRATED), {"level_zero:gpu:0": 0}, "level_zero:gpu:0", compute=[])


def test_laptop_with_the_older_dpnp(laptop: Machine) -> None:
    machine = older_if_there(laptop).setting(**NO_POOL).adapter("v2")
    check(machine, two_views(ARC_INTEGRATED), {"level_zero:gpu:0": 0}, "level_zero:gpu:0", compute=["level_zero:gpu:0"])


def test_workstation(workstation: Machine) -> None:
    machine = workstation.setting(**NO_POOL).adapter("v1")
    check(machine, two_views(ARC), {"level_zero:gpu:0": 0}, "level_zero:gpu:0", compute=["level_zero:gpu:0"])


def test_node(node: Machine) -> None:
    machine = node.setting(**NO_POOL).adapter("v2")
    names = ["level_zero:gpu:0", "level_zero:gpu:1", "opencl:gpu:0", "opencl:gpu:1"]
    measured = {"level_zero:gpu:1": 1, "opencl:gpu:0": 0}
    check(machine, dict.fromkeys(names, MAX), measured, "level_zero:gpu:0", compute=["level_zero:gpu:1"])


def test_opencl_only(opencl_only: Machine) -> None:
    gpu = "opencl:gpu:0"
    check(opencl_only, {gpu: ARC}, {gpu: 0}, gpu, compute=[gpu])


def test_kernels_that_write_past_small_blocks_do_no_harm(opencl_only: Machine) -> None:
    """A GPU's memory comes in pages, and oneMKL counts on it. It also asks which GPU it is (`rayleigh`)."""
    ended = opencl_only.run(
        "import dpnp\nfor n in range(1, 30): dpnp.random.chisquare(3, n), dpnp.random.rayleigh(2.0, n)\nprint('right')"
    )
    assert (ended.exit_code, ended.stdout) == (0, "right\n"), ended.stderr


def test_opencl_only_with_the_older_dpnp(opencl_only: Machine) -> None:
    gpu = "opencl:gpu:0"
    check(older_if_there(opencl_only), {gpu: ARC}, {gpu: 0}, gpu, compute=[])


def test_cpu_only(cpu_only: Machine) -> None:
    assert cpu_only.run(LIST).json() == ["opencl:cpu:0"]


def test_no_device(no_device: Machine) -> None:
    assert no_device.run(LIST).json() == []
    ended = no_device.run("import dpnp; dpnp.ones(3)")
    assert ended.exit_code == 1
    assert "Default device is unavailable" in ended.stderr


def test_gpu_without_driver(gpu_without_driver: Machine) -> None:
    assert gpu_without_driver.run(LIST).json() == ["opencl:cpu:0"]
    vendor = gpu_without_driver.run(
        "import json, os; vendor = open('/sys/class/drm/renderD128/device/vendor').read()\n"
        "print(json.dumps([os.listdir('/dev/dri'), vendor]))"
    )
    assert vendor.json() == [["renderD128"], "0x8086\n"]


def test_dpmem_reports_the_machine(workstation: Machine) -> None:
    program = "import dpnp; print(dpnp.ones(3).sycl_device.filter_string)"
    ended = workstation.dpmem("run", "--no-summary", "--json", "-", "-c", program)
    assert ended.stdout.startswith("level_zero:gpu:0\n")
    devices = {device["filter"]: device for device in ended.json()["devices"]}
    assert set(devices) == {"level_zero:gpu:0", "opencl:gpu:0", "opencl:cpu:0"}
    default = devices["level_zero:gpu:0"]
    told = [default[key] for key in ("name", "backend", "type", "default", "capacity_bytes", "max_alloc_bytes")]
    assert told == [ARC[0], "level_zero", "gpu", True, *ARC[1:]]


@pytest.mark.parametrize("description", ["mem", "mem=1GiB;colour=red"])
def test_a_wrong_description_is_said_and_shows_no_device(opencl_only: Machine, description: str) -> None:
    ended = opencl_only.having(description).run(LIST)
    assert ended.json() == ["opencl:cpu:0"]
    assert "simulated-devices: SIMULATED_DEVICES: `" in ended.stderr


def test_a_simulated_cpu_of_any_size(opencl_only: Machine) -> None:
    machine = opencl_only.having("type=cpu;name=Small;mem=1GiB")
    text = "import dpctl, json; d = dpctl.SyclDevice('opencl:cpu:1'); print(json.dumps([d.name, d.global_mem_size]))"
    assert machine.run(text).json() == ["Small", GIB]


def test_room_comes_back_late_if_ordered(opencl_only: Machine) -> None:
    program = """
import dpctl.memory, json, simulated_controls as controls
block = dpctl.memory.MemoryUSMDevice(1000)
controls.delay_frees(3_600_000)
del block
kept = [controls.used()]
controls.delay_frees(0)
block = dpctl.memory.MemoryUSMDevice(24)
kept.append(controls.used())
del block
kept.append(controls.used())
print(json.dumps(kept))
"""
    assert opencl_only.run(program).json() == [1000, 1024, 1000]


def test_controls_know_their_devices(opencl_only: Machine) -> None:
    ended = opencl_only.run("import simulated_controls as controls; controls.used(1)")
    assert ended.exit_code == 1
    assert "LookupError: there is no simulated device 1" in ended.stderr
