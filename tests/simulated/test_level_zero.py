"""What only the Level Zero driver has: two adapters, a pool of theirs, free memory, and others that take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .fixtures import Machine

GIB = 1 << 30
#: Small blocks lie in one larger piece of the adapter's. Each goes back to the pool when its successor is there.
POOLED = """
import dpctl.memory, dpmem
block = dpctl.memory.MemoryUSMDevice(8)
dpmem.enable_pool()
kinds = []
for _ in range(6):
    block = dpctl.memory.MemoryUSMDevice(8)
    kinds.append(block.get_usm_type())
print(set(kinds))
"""
FREE = """
import dpctl, dpctl.memory, json
from dpctl.utils import intel_device_info
import simulated_controls as controls
def free():
    devices = [d for d in dpctl.get_devices() if d.backend == dpctl.backend_type.level_zero]
    return [intel_device_info(d).get("free_memory") for d in devices]
told = [free()]
block = dpctl.memory.MemoryUSMDevice(1 << 30, queue=dpctl.SyclQueue("level_zero:gpu:0"))
told.append(free())
controls.set_others(20 << 30)
told.append(free())
print(json.dumps(told))
"""


@pytest.mark.parametrize("adapter", ["v1", "v2"])
def test_a_small_block_of_the_pool_is_not_taken_for_its_neighbour(workstation: Machine, adapter: str) -> None:
    ended = workstation.adapter(adapter).run(POOLED)
    assert (ended.exit_code, ended.stdout) == (0, "{'device'}\n"), ended.stderr


@pytest.mark.parametrize(("adapter", "other"), [("v1", "V2"), ("v2", "V1")])
def test_either_adapter_serves(workstation: Machine, adapter: str, other: str) -> None:
    machine = workstation.adapter(adapter).setting(UR_LOG_LEVEL_ZERO="level:info;output:stderr;flush:info")
    ended = machine.run("import dpctl, json; print(json.dumps(len(dpctl.get_devices('level_zero'))))")
    assert ended.json() == 1
    assert f"Skipping L0 {other} adapter" in ended.stderr


def test_free_memory_as_drivers_tell_it(workstation: Machine) -> None:
    devices = ["mem=48GiB;other=2GiB", "mem=16GiB;other=2GiB;privileged=0", "mem=8GiB;sysman=0"]
    told = workstation.having("|".join(devices)).run(FREE).json()
    assert told == [
        [46 * GIB, 16 * GIB, None],
        [45 * GIB, 16 * GIB, None],
        [27 * GIB, 16 * GIB, None],
    ]


def test_an_integrated_gpu_tells_the_host_s_memory(laptop: Machine) -> None:
    total = next(
        int(line.split()[1]) << 10 for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line
    )
    machine = laptop.having("name=Integrated;mem=9999GiB;integrated=1;other=9000GiB")
    [[free], [after], [later]] = machine.run(FREE).json()
    assert all(0 < told < total for told in (free, after, later))


def test_another_process_can_be_acted_by_a_file(workstation: Machine, tmp_path: Path) -> None:
    others = tmp_path / "others"
    machine = workstation.having(f"mem=16GiB;other=@{others}")
    program = """
import dpctl, json, sys
from dpctl.utils import intel_device_info
device, told = dpctl.SyclDevice("level_zero:gpu:0"), []
for text in ("1GiB", "5GiB"):
    open(sys.argv[1], "w").write(text)
    told.append(intel_device_info(device)["free_memory"])
print(json.dumps(told))
"""
    assert machine.run(program, str(others)).json() == [15 * GIB, 11 * GIB]


@pytest.mark.parametrize("adapter", ["v1", "v2"])
def test_what_the_adapter_keeps_is_its_cache(workstation: Machine, adapter: str) -> None:
    program = """
import dpctl, dpctl.memory, json, dpmem
import simulated_controls as controls
dpmem.start()
queue, seen = dpctl.SyclQueue(), []
def look():
    seen.append([dpmem.memory_allocated(), controls.used()])
for _ in range(2):
    for size in (1000, 200_000, 3_000_000, 100_000_000):
        block = dpctl.memory.MemoryUSMDevice(size, queue=queue)
        look()
        del block
    look()
print(json.dumps(seen))
"""
    seen = workstation.adapter(adapter).run(program).json()
    allocated, used = zip(*seen, strict=True)
    assert allocated == (1000, 200_000, 3_000_000, 100_000_000, 0) * 2
    cached = [there - ours for ours, there in seen]
    assert all(0 <= kept < 100_000_000 for kept in cached), "small blocks stay with the adapter, and no large one does"
    assert used[4] == cached[4] > 0
    again = [used[4], used[4], used[4], used[4] + 100_000_000, used[4]]
    assert list(used[5:]) == again, "what is kept serves the same requests again"
    seen = workstation.adapter(adapter).setting(UR_L0_DISABLE_USM_ALLOCATOR="1").run(program).json()
    assert all(ours == there for ours, there in seen)


def test_programs_may_look_the_functions_up_by_name(workstation: Machine) -> None:
    """As `dpmem` and other tools do: load the loader, and ask it for free memory without SYCL."""
    program = """
import ctypes, json
loader = ctypes.CDLL("libze_loader.so.1")
assert loader.zesInit(0) == 0
count, driver, device = ctypes.c_uint32(0), ctypes.c_void_p(), ctypes.c_void_p()
assert loader.zesDriverGet(ctypes.byref(count), None) == 0 and count.value == 1
assert loader.zesDriverGet(ctypes.byref(count), ctypes.byref(driver)) == 0
count.value = 1
assert loader.zesDeviceGet(driver, ctypes.byref(count), ctypes.byref(device)) == 0
memory = ctypes.c_void_p()
assert loader.zesDeviceEnumMemoryModules(device, ctypes.byref(count), ctypes.byref(memory)) == 0
class State(ctypes.Structure):
    _fields_ = [("stype", ctypes.c_uint32), ("next", ctypes.c_void_p), ("health", ctypes.c_uint32),
                ("free", ctypes.c_uint64), ("size", ctypes.c_uint64)]
state = State(0x1e)
assert loader.zesMemoryGetState(memory, ctypes.byref(state)) == 0
print(json.dumps([state.free, state.size]))
"""
    assert workstation.having("mem=16GiB;other=3GiB").run(program).json() == [13 * GIB, 16 * GIB]


@pytest.mark.parametrize("adapter", ["v1", "v2"])
def test_built_kernels_can_be_kept(workstation: Machine, tmp_path: Path, adapter: str) -> None:
    kernels = tmp_path / "kernels"
    machine = workstation.adapter(adapter).setting(SYCL_CACHE_DIR=str(kernels))
    program = "import dpnp; print(float((dpnp.arange(7, dtype='f4') * 3).sum()))"
    for _ in range(2):
        assert machine.run(program).json() == 63
    [*kept] = kernels.rglob("*.bin")
    assert kept
    assert all(b"simulated-devices 1\n" in path.read_bytes() for path in kept)
