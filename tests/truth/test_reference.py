"""Current, peak and what filled it against a naive replay of dpmem's own event log, kept under one lock.

For programs that do not wait, the order of allocations and frees in the runtime's trace is not certain. In
the log it is: `reference.events` holds `[op, kind, device, bytes, site, pointer]` in the order of the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .corpus import ENVIRONMENTS, PROGRAMS, Environment, Program, run_recorded

ROW_COLUMNS = (
    "alloc_count",
    "allocated_bytes",
    "free_count",
    "freed_bytes",
    "current_count",
    "current_bytes",
    "peak_count",
    "peak_bytes",
)


@dataclass
class Replay:
    """What a dictionary and running sums make of the events."""

    rows: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    sites: dict[int, Counter[str]] = field(default_factory=dict)
    peak_bytes: int = 0
    peak_compositions: list[dict[int, tuple[int, int]]] = field(default_factory=list)  # at each moment of the peak


def replay(events: list[list]) -> Replay:
    result = Replay()
    blocks: dict[int, tuple] = {}
    total = 0
    for op, kind, device, size, site, pointer in events:
        row = result.rows.setdefault((device, kind), Counter())
        of_site = result.sites.setdefault(site, Counter())
        if op == "alloc":
            assert pointer not in blocks, f"{pointer:#x} is allocated twice"
            blocks[pointer] = (kind, device, size, site)
            row.update(alloc_count=1, allocated_bytes=size, current_count=1, current_bytes=size)
            of_site.update(alloc_count=1, allocated_bytes=size, live_count=1, live_bytes=size)
            total += size
        else:
            assert op == "free", f"unknown event `{op}`"
            assert blocks.pop(pointer) == (kind, device, size, site)
            row.update(free_count=1, freed_bytes=size)
            row.subtract(current_count=1, current_bytes=size)
            of_site.subtract(live_count=1, live_bytes=size)
            total -= size
        row["peak_bytes"] = max(row["peak_bytes"], row["current_bytes"])
        row["peak_count"] = max(row["peak_count"], row["current_count"])
        of_site["peak_bytes"] = max(of_site["peak_bytes"], of_site["live_bytes"])
        if total > result.peak_bytes:
            result.peak_compositions.clear()
        if total >= result.peak_bytes:
            result.peak_bytes = total
            parts = {i: (s["live_bytes"], s["live_count"]) for i, s in result.sites.items()}
            result.peak_compositions.append({i: part for i, part in parts.items() if part != (0, 0)})
    return result


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: e.name)
@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.waits], ids=lambda p: p.name)
def test_report_equals_replay(
    program: Program, environment: Environment, tmp_path: Path, variables: Mapping[str, str]
) -> None:
    run = run_recorded(program, environment, tmp_path, {**variables, "DPMEM_TEST_REFERENCE": "1"})
    assert run.exit_code == program.exit_code, run.stderr
    assert run.report is not None, run.stderr
    report = run.report
    assert report["recording"]["complete"] is True, report["recording"]["reason"]
    events = report["reference"]["events"]
    assert events
    expected = replay(events)

    # a row or site that only ever failed to allocate has no event
    rows = {(r["device"], r["kind"]): {c: r[c] for c in ROW_COLUMNS} for r in report["usm"]}
    assert len(rows) == len(report["usm"]), "a row is there twice"
    assert {key: row for key, row in rows.items() if row["alloc_count"]} == {
        key: {c: row[c] for c in ROW_COLUMNS} for key, row in expected.rows.items()
    }
    columns = ("alloc_count", "allocated_bytes", "peak_bytes", "live_bytes", "live_count")
    sites = {s["id"]: {c: s[c] for c in columns} for s in report["sites"] if s["alloc_count"]}
    assert sites == {i: {c: s[c] for c in columns} for i, s in expected.sites.items()}
    assert report["peak"]["bytes"] == expected.peak_bytes
    filled = {part["site"]: (part["bytes"], part["count"]) for part in report["peak"]["sites"]}
    assert {i: part for i, part in filled.items() if part != (0, 0)} in expected.peak_compositions


def test_replay_of_a_small_log() -> None:
    events = [
        ["alloc", "device", "cpu", 100, 0, 0x10],
        ["alloc", "host", "cpu", 50, 1, 0x20],
        ["free", "device", "cpu", 100, 0, 0x10],
        ["alloc", "device", "cpu", 30, 0, 0x10],
        ["alloc", "device", "cpu", 70, 2, 0x30],
        ["free", "host", "cpu", 50, 1, 0x20],
    ]
    result = replay(events)
    assert result.peak_bytes == 150
    assert result.peak_compositions == [
        {0: (100, 1), 1: (50, 1)},
        {0: (30, 1), 1: (50, 1), 2: (70, 1)},
    ]
    assert result.rows["cpu", "device"]["peak_count"] == 2
    assert result.rows["cpu", "host"]["current_bytes"] == 0
    assert result.sites[0] == Counter(alloc_count=2, allocated_bytes=130, live_count=1, live_bytes=30, peak_bytes=100)
