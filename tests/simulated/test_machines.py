"""Each simulated machine: what dpctl lists, the default, right results, and memory counted to the byte.

The long matrix (both environments, both adapters, dpctl's own tests) is in `tests/soak/test_simulated.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .fixtures import OLDER, Machine

SMOKE = Path(__file__).parent / "programs/smoke.py"
GIB = 1 << 30
ARC = ["Intel(R) Arc(TM) A770 Graphics", 16 * GIB, 4 * GIB]
MAX = ["Intel(R) Data Center GPU Max 1550", 64 * GIB, 64 * GIB]
LIST = "import dpctl, json; print(json.dumps([d.filter_string for d in dpctl.get_devices()]))"


def older_if_there(machine: Machine) -> Machine:
    if not (OLDER / "bin/python").exists():
        pytest.skip("the environment with dpnp 0.19 is not set up; `make setup-019` does it")
    return machine.within(OLDER)


def check(machine: Machine, gpus: dict[str, list], measured: dict[str, int], default: str) -> dict:
    """Run the smoke program on the GPUs; measure memory on some, by their number among the simulated devices."""
    words = [f"{name}={measured[name]}" if name in measured else name for name in gpus]
    found = machine.run(SMOKE, *words).json()
    listed = {name: facts for name, *facts in found["devices"]}
    assert {name: facts for name, facts in listed.items() if name != "opencl:cpu:0"} == gpus
    assert "opencl:cpu:0" in listed
    assert (found["default"], found["array"]) == (default, default)
    for name in gpus:
        of = found["of"][name]
        assert of["wrong"] == []
        assert of["random"] is True
    for name in measured:
        check_memory(found["of"][name], gpus[name][1] // GIB)
    return found


def check_memory(of: dict, gibibytes: int) -> None:
    assert of["ledger"] == of["used"]
    assert of["used"][2] - of["used"][1] == 5_000_001
    assert of["used"][3] == of["used"][0]
    refused = ["USMAllocationError", "USM allocation failed"]
    assert of["too large"] == of["full"] == of["others took it"] == refused
    assert of["filled_gib"] == gibibytes
    assert of["room again"] is None
    assert of["ordered"] == [True, False, True]


def test_opencl_only(opencl_only: Machine) -> None:
    check(opencl_only, {"opencl:gpu:0": ARC}, {"opencl:gpu:0": 0}, "opencl:gpu:0")


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
