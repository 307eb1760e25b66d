"""The pool and limits on simulated GPUs, through both drivers and both Level Zero adapters."""

import json
from pathlib import Path

import pytest


@pytest.fixture(params=["opencl", "v1", "v2"])
def gpu(request, opencl_only, workstation):
    """A machine whose default device is a GPU, reached in three ways."""
    return opencl_only if request.param == "opencl" else workstation.adapter(request.param)


def test_memory_in_flight_stays_what_it_is(opencl_only, tmp_path):
    report = tmp_path / "report.json"
    machine = opencl_only.setting(DPMEM_TEST_POISON="1")
    program = Path(__file__).parent / "scripts/freed_in_flight.py"
    ended = machine.dpmem("run", "--no-summary", "--json", report, "--pool", program, "6")
    assert ended.stdout.startswith("wrong 0 of 6"), ended
    facts = json.loads(report.read_text())
    assert facts["pool"]["hits"] > 0
    assert ":gpu:" in next(row["device"] for row in facts["usm"] if row["kind"] == "device")


def test_a_full_device_is_explained(gpu, tmp_path):
    source = """
import dpctl.memory as m, dpmem
import simulated_controls as controls
kept = [m.MemoryUSMDevice(2 << 30) for _ in range(3)]
controls.set_others(9 << 30)
for n in range(3):
    try:
        kept.append(m.MemoryUSMShared(2 << 30))
    except dpmem.OutOfDeviceMemory as error:
        print(error.kind, error.limit_bytes, error.free_bytes, error.free_trust, sep=";")
        print(error, file=__import__("sys").stderr)
        kept.clear()
print(len(kept))
"""
    program = tmp_path / "full.py"
    program.write_text(source)
    ended = gpu.dpmem("run", "--no-summary", "--pool", program)
    assert ended.exit_code == 0, ended.stderr
    told, left = ended.stdout.splitlines()
    # Only Level Zero tells what is free.
    free = "None;unknown" if gpu.name == "opencl_only" else f"{1 << 30};exact"
    assert (told, left) == (f"shared;None;{free}", "2")
    assert "refused by the runtime" in ended.stderr
    assert "__main__.kept" in ended.stderr


def test_what_each_runtime_says_of_a_shortage_is_told_from_other_errors(gpu, tmp_path):
    source = """
import dpctl.memory as m, dpmem
import simulated_controls as controls

def attempt(cls, size, **how):
    before = dpmem.last_out_of_memory()
    try:
        cls(size, **how)
        return "served"
    except m.USMAllocationError:
        after = dpmem.last_out_of_memory()
        return "wrong" if after is None or before is not None else "short"

print(attempt(m.MemoryUSMDevice, 1000, alignment=3), attempt(m.MemoryUSMShared, 1000, alignment=3))
print(attempt(m.MemoryUSMHost, 1 << 62), dpmem.memory_stats()["num_ooms"])
controls.set_others(14 << 30)
for cls, size in ((m.MemoryUSMDevice, 3 << 30), (m.MemoryUSMShared, 3 << 30), (m.MemoryUSMDevice, 1 << 45)):
    try:
        cls(size)
    except dpmem.OutOfDeviceMemory as error:
        print(error.kind, error.requested_bytes == size)
"""
    program = tmp_path / "told_apart.py"
    program.write_text(source)
    ended = gpu.dpmem("run", "--no-summary", "--json", tmp_path / "report.json", program)
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout == "wrong wrong\nshort 1\ndevice True\nshared True\ndevice True\n"
    report = json.loads((tmp_path / "report.json").read_text())
    failed = {finding["evidence"]["failed_count"] for finding in report["findings"] if finding["code"] == "DPM503"}
    assert failed == {1, 3}
