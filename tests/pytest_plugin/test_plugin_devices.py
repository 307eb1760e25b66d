"""Marks and the summary where a machine has several devices."""

import re

SUITE = """
import dpnp, pytest

MIB = 1 << 20
KEPT = []

def mib(count, device):
    return dpnp.empty(count * MIB // 4, dtype="f4", device=device)

@pytest.mark.limit_device_memory("12MiB")
def test_limit_is_of_each_device():
    x, y = mib(8, "level_zero:gpu:0"), mib(10, "opencl:cpu:0")

@pytest.mark.limit_device_memory("9MiB")
def test_one_is_over_it():
    x, y = mib(8, "level_zero:gpu:0"), mib(10, "opencl:cpu:0")

@pytest.mark.limit_device_leaks("1MiB")
def test_leaks_on_one():
    KEPT.append(mib(4, "level_zero:gpu:0"))
    x = mib(2, "opencl:cpu:0")

@pytest.mark.limit_device_memory("50%")
def test_share_of_each():
    x, y = mib(1, "level_zero:gpu:0"), mib(1, "opencl:cpu:0")
"""


def test_each_device_is_judged_and_shown_by_itself(workstation):
    machine = workstation.adapter("v2").setting(UR_L0_USE_ALLOCATOR="0", COLUMNS="160")
    machine.folder.mkdir()
    (machine.folder / "test_devices.py").write_text(SUITE)
    python = str(machine.prefix / "bin/python")
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", ".", "--dpmem"]
    ended = machine.start([python, "-m", "pytest", *options, "test_devices.py"], timeout=200)
    assert "2 failed, 2 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "used 10 MiB on opencl:cpu:0, more than its limit of 9 MiB" in ended.stdout
    assert "left 4 MiB in use on level_zero:gpu:0 each of 3 times that it ran" in ended.stdout
    assert "on level_zero:gpu:0, more than its limit of 9 MiB" not in ended.stdout
    rows = ended.stdout.split("device memory (dpmem)")[1].splitlines()
    leak = next(number for number, row in enumerate(rows) if "test_leaks_on_one" in row)
    assert [re.split(" {2,}", row.strip())[::4] for row in rows[leak : leak + 3]] == [
        ["4 MiB", "test_devices.py::test_leaks_on_one"],
        ["4 MiB", "on level_zero:gpu:0"],
        ["2 MiB", "on opencl:cpu:0"],
    ]
