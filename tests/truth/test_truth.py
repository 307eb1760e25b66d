"""What `dpmem run` counts against what the runtime's own trace says, for every program of the corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from .corpus import ENVIRONMENTS, PROGRAMS, Environment, Program, Run, run_plain, run_recorded
from .trace import KINDS, Truth, read_trace

ATTEMPTS = 3
EXACT = (
    "alloc_count",
    "allocated_bytes",
    "free_count",
    "freed_bytes",
    "failed_count",
    "current_count",
    "current_bytes",
)
PEAKS = ("peak_bytes", "peak_count")


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: e.name)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_report_equals_trace(
    program: Program, environment: Environment, tmp_path: Path, variables: Mapping[str, str]
) -> None:
    check_program(program, environment, tmp_path, variables)


def check_program(program: Program, environment: Environment, folder: Path, variables: Mapping[str, str]) -> Run:
    """Run a program plainly and under `dpmem run`; the report must say what the trace says."""
    plain = run_plain(program, environment, folder / "plain", variables)
    assert plain.exit_code == program.exit_code, plain.stderr
    for attempt in range(ATTEMPTS):
        run, truth = record(program, environment, folder / f"recorded{attempt}", variables)
        if not (program.waits and truth.overlaps):
            break
    else:
        pytest.fail(f"allocations and frees overlapped in {ATTEMPTS} runs: the program does not wait after each step")

    assert (run.exit_code, run.report["exit_code"]) == (program.exit_code, program.exit_code), run.stderr
    assert truth.output == plain.stdout
    assert run.report["recording"]["complete"] is True, run.report["recording"]["reason"]
    assert sum(row.alloc_count for row in truth.kinds.values()) > 0
    compare_kinds(run.report, truth, (*EXACT, *PEAKS) if program.waits and len(truth.devices) == 1 else EXACT)
    compare_devices(run.report, truth, (*EXACT, *PEAKS) if program.waits else EXACT)
    if program.waits:
        assert run.report["peak"]["bytes"] == truth.peak_bytes
    compare_transfers(run.report, truth)
    check_sums(run.report)
    return run


def record(program: Program, environment: Environment, folder: Path, variables: Mapping[str, str]) -> tuple[Run, Truth]:
    """One recorded run, and the trace from where recording began to where the report was taken."""
    tracing = {"SYCL_UR_TRACE": "2", "DPMEM_TEST_MARK": "1"}
    run = run_recorded(program, environment, folder, {**variables, **tracing})
    assert run.report is not None, run.stderr
    truth = read_trace(run.stdout.splitlines(keepends=True), marks=True)
    assert not truth.open_calls, "calls were under way when the report was taken"
    return run, truth


def compare_kinds(report: dict, truth: Truth, columns: tuple[str, ...]) -> None:
    said = {kind: Counter({column: 0 for column in columns}) for kind in KINDS}
    devices: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for row in report["usm"]:
        said[row["kind"]].update({column: row[column] for column in columns})
        devices[row["kind"]].append(row["device"])
    if set(columns) & set(PEAKS):
        assert all(len(names) <= 1 for names in devices.values()), f"peaks of several devices do not add up: {devices}"
    happened = {kind: {column: getattr(row, column) for column in columns} for kind, row in truth.kinds.items()}
    assert {kind: dict(row) for kind, row in said.items()} == happened


def compare_devices(report: dict, truth: Truth, columns: tuple[str, ...]) -> None:
    """The trace has handles and the report has names, so rows are compared without either, sorted by what they hold."""
    said: dict[str, list[tuple[int, ...]]] = {kind: [] for kind in KINDS}
    for row in report["usm"]:
        if row["kind"] != "host":
            assert row["device"] is not None, row
            said[row["kind"]].append(tuple(row[column] for column in columns))
    happened: dict[str, list[tuple[int, ...]]] = {kind: [] for kind in KINDS}
    for (_, kind), row in truth.rows.items():
        happened[kind].append(tuple(getattr(row, column) for column in columns))
    if not truth.partitioned:  # a sub-device has a handle, and its root's name
        assert {kind: sorted(rows) for kind, rows in said.items()} == {k: sorted(rows) for k, rows in happened.items()}


def compare_transfers(report: dict, truth: Truth) -> None:
    said: dict[str, list[int]] = {}
    for row in report["transfers"]:
        total = said.setdefault(row["direction"], [0, 0])
        total[0] += row["count"]
        total[1] += row["bytes"]
    assert said == {direction: [a.count, a.bytes] for direction, a in truth.transfers.items()}


def check_sums(report: dict) -> None:
    """The parts of the report that tell the same story in different cuts agree with each other."""
    rows: Counter[tuple] = Counter()
    for row in report["usm"]:
        key = (row["device"], row["kind"])
        rows[(*key, "alloc_count")] += row["alloc_count"]
        rows[(*key, "allocated_bytes")] += row["allocated_bytes"]
        rows[(*key, "live_bytes")] += row["current_bytes"]
        rows[(*key, "live_count")] += row["current_count"]
    sites: Counter[tuple] = Counter()
    for site in report["sites"]:
        for column in ("alloc_count", "allocated_bytes", "live_bytes", "live_count"):
            sites[site["device"], site["kind"], column] += site[column]
    assert +sites == +rows

    known = {site["id"]: site for site in report["sites"]}
    assert len(known) == len(report["sites"]), "a site is there twice"
    assert sum(part["bytes"] for part in report["peak"]["sites"]) == report["peak"]["bytes"]
    for part in report["peak"]["sites"]:
        assert part["bytes"] <= known[part["site"]]["peak_bytes"]
    live: Counter[tuple] = Counter()
    for row in report["live"]:
        live[row["site"], "bytes"] += row["bytes"]
        live[row["site"], "count"] += row["count"]
    of_sites = {(i, c): site[f"live_{c}"] for i, site in known.items() for c in ("bytes", "count")}
    assert +live == +Counter(of_sites)
