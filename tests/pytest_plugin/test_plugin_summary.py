"""`--dpmem`: the hungriest tests, in one process and in several, and beside `dpmem run`."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from suite_sessions import run_suite

from dpmem import _suite_text
from dpmem._suite_usage import DeviceUsage, Peak, Usage

ROWS = {
    "test_hungriest": ("16 MiB", "0 B"),
    "test_resets_peaks": ("12 MiB", "0 B"),
    "test_fails": ("7 MiB", "–"),
    "test_little": ("5 MiB", "0 B"),
    "test_leak": ("4 MiB", "4 MiB"),
    "test_keeps[3]": ("3 MiB", "3 MiB"),
    "test_keeps[2]": ("2 MiB", "2 MiB"),
    "test_keeps[1]": ("1 MiB", "1 MiB"),
    "test_uses_none": ("0 B", "0 B"),
}


def table(done):
    """Peak and what is left over of each test, in the order of the table; a few bytes of dpnp's own are none."""
    lines = done.text.split("device memory (dpmem)")[1].splitlines()[2:]
    rows = {}
    for line in lines:
        if "test_suite.py::" not in line or line.startswith(("FAILED", "PASSED")):
            break
        size, unit, *rest = line.split()
        left = rest[0] if rest[0] == "–" else f"{rest[0]} {rest[1]}"
        rows[line.rpartition("::")[2]] = (f"{size} {unit}", "0 B" if left.endswith(" B") else left)
    return rows


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["one process", "two workers"])
def test_the_hungriest_tests_are_printed(suite, options):
    done = suite("measured.py", "--dpmem", "--dpmem-most=0", *options)
    rows = table(done)
    assert rows == ROWS, done.text
    assert list(rows) == list(ROWS)
    assert "more test" not in done.text
    assert "–: not known, as the failure keeps" in done.text
    assert {name for name, outcome in done.outcomes.items() if outcome == "FAILED"} == {"test_leak", "test_fails"}
    assert "warning" not in done.text


def test_only_some_are_printed():
    tests = [row("", size << 20) | {"nodeid": f"test_a.py::test_{size}", "devices": []} for size in (1, 3, 2)]
    lines = _suite_text.summary(tests, 2)
    assert [line.split("::")[-1] for line in lines[1:3]] == ["test_3", "test_2"]
    assert lines[3:] == ["… and 1 more test (--dpmem-most=0 prints all)"]


def test_workers_enforce_marks_without_the_option(suite):
    done = suite("measured.py", "-n", "2")
    assert "left 4 MiB in use" in done.text
    assert "device memory (dpmem)" not in done.text


def test_under_dpmem_run_the_peak_of_the_run_stands(tmp_path):
    command = (
        str(Path(sys.executable).parent / "dpmem"),
        "run",
        "--json",
        "report.json",
        "--no-summary",
        "-m",
        "pytest",
    )
    done = run_suite(
        tmp_path, "measured.py", "--dpmem", "-W", "error", "-k", "little or leak or hungriest", command=command
    )
    assert list(table(done)) == ["test_hungriest", "test_little", "test_leak"]
    assert "what filled the peak is not known: the run had a higher peak before" in done.failures["test_leak"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["recording"]["complete"], report["recording"]
    assert report["peak"]["bytes"] >= 37 << 20, "the fixture's 32 MiB and the test's 5 MiB"


def row(device, peak):
    return {"device": device, "peak_bytes": peak, "left_bytes": 0, "alloc_count": 2, "allocated_bytes": peak}


def test_each_device_has_its_row_where_there_are_several():
    both = [row("opencl:gpu:0", 3 << 20), row("opencl:cpu:0", 1 << 20)]
    test = {**row("", 3 << 20), "nodeid": "test_a.py::test_both", "devices": both}
    lines = _suite_text.summary([test], 10)
    assert [line.split("  ")[-1] for line in lines[1:]] == [
        "test_a.py::test_both",
        "on opencl:gpu:0",
        "on opencl:cpu:0",
    ]
    assert lines[3].startswith("     1 MiB")
    assert len(_suite_text.summary([{**test, "devices": both[:1]}], 10)) == 2


def test_a_peak_of_another_moment_is_called_so():
    part = ([("a.py", 3, "f", False)], None, "device", "opencl:cpu:0", 1, 1 << 20)
    host = ([("a.py", 4, "f", False)], None, "host", "opencl:cpu:0", 1, 8 << 20)
    at = DeviceUsage("opencl:cpu:0", begun_bytes=0, peak_bytes=2 << 20, alloc_count=3, allocated_bytes=11 << 20)
    usage = Usage(0, [at], Peak(9 << 20, [host, part]), "")
    assert _suite_text.filled_by(usage, at) == [
        "in use when USM of all kinds and devices was at its most, 9 MiB, 1 MiB of it here:",
        "       1 MiB in 1 block  a.py:3 in f",
    ]
    assert (
        "a.py:3"
        in _suite_text.filled_by(replace(usage, peak=Peak(1 << 20, [part])), replace(at, peak_bytes=1 << 20))[1]
    )
    assert _suite_text.filled_by(replace(usage, peak=None, no_peak="why"), at) == [
        "what filled the peak is not known: why"
    ]
