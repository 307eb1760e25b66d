"""Words and tables: what a failed test is told, and the summary of a suite."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from dpmem import _native
from dpmem._live import LiveBlock
from dpmem._suite_usage import DeviceUsage, Peak, Usage

#: Rows of a list before it says how many more there are.
_MOST_ROWS = 8
_MOST_HOLDERS = 3
_TO_FIXTURE = re.compile(r"^.*(?:\.funcargs\['(\w+)'\]|_arg2fixturedefs\['(\w+)'\]\[\d+\]\.cached_result\[0\])")
_size = _native.human_size
_count = _native.human_count


def counted(count: int, what: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{_count(count)} {what}{'' if count == 1 else 's'}"


def filled_by(usage: Usage, at: DeviceUsage) -> list[str]:
    """The peak's composition, as far as it is of one device."""
    if usage.peak is None:
        return [f"what filled the peak is not known: {usage.no_peak}"]
    parts = [part for part in usage.peak.parts if part[3] == at.device and part[2] != "host"]
    total = sum(part[5] for part in parts)
    when = "at the peak" if total == at.peak_bytes else _other_moment(usage.peak, total)
    rows = _by_line(((stack, origin), count, size) for stack, origin, _, _, count, size in parts)
    return [f"in use {when}:", *_rows(rows)]


def _other_moment(peak: Peak, total: int) -> str:
    return f"when USM of all kinds and devices was at its most, {_size(peak.bytes)}, {_size(total)} of it here"


def still_there(live: list[LiveBlock], addresses: set[int]) -> list[str]:
    """Lines on some of the blocks that `dpmem.live()` has listed: their sites, and who holds them."""
    by_site: dict[str, list[LiveBlock]] = {}
    for block in live:
        if block.address not in addresses:
            continue
        by_site.setdefault(block.site, []).append(block)
    groups = sorted(by_site.values(), key=lambda group: -sum(block.bytes for block in group))
    lines = []
    for group in groups[:_MOST_ROWS]:
        first = group[0]
        size = _size(sum(block.bytes for block in group))
        place = _place(first.file, first.line, first.function or "?") if first.file and first.line else first.site
        lines.append(f"  {size:>10} in {counted(len(group), 'block')}  {place}")
        lines.extend(f"{'':>14}{words}" for words in _holders_of(group))
    if len(groups) > _MOST_ROWS:
        lines.append(f"  … and {counted(len(groups) - _MOST_ROWS, 'more line')}")
    gap = getattr(live, "gap", "")
    return [*lines, gap] if lines and gap else lines


def _holders_of(group: Sequence[LiveBlock]) -> list[str]:
    paths = dict.fromkeys(
        f"held by {_named(holder.path)} ({holder.kind})" for block in group for holder in block.holders
    )
    if not paths:
        state = "in flight" if group[0].state == "in_flight" else f"{group[0].state}, no holder found"
        return [state]
    words = list(paths)[:_MOST_HOLDERS]
    return [*words, f"… and {_count(len(paths) - _MOST_HOLDERS)} more"] if len(paths) > _MOST_HOLDERS else words


def _named(path: str) -> str:
    """A way through pytest's own objects to the value of a fixture begins with that."""
    return _TO_FIXTURE.sub(lambda found: f"fixture '{found[1] or found[2]}'", path)


def _by_line(places: Iterable[tuple[tuple[Any, Any], int, int]]) -> list[tuple[str, int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for (stack, origin), count, size in places:
        frame = next((frame for frame in stack if not frame[3]), stack[0] if stack else None)
        where = _place(*frame[:3]) if frame else (origin or "unknown")
        known = sums.get(where, (0, 0))
        sums[where] = (known[0] + count, known[1] + size)
    return sorted(((where, *both) for where, both in sums.items()), key=lambda row: -row[2])


def _rows(rows: Sequence[tuple[str, int, int]]) -> list[str]:
    lines = [f"  {_size(size):>10} in {counted(count, 'block')}  {where}" for where, count, size in rows[:_MOST_ROWS]]
    rest = rows[_MOST_ROWS:]
    if rest:
        lines.append(f"  {_size(sum(row[2] for row in rest)):>10} from {counted(len(rest), 'more line')}")
    return lines


def _place(file: str, line: int, function: str) -> str:
    near = os.path.relpath(file) if os.path.isabs(file) else file
    source = linecache.getline(file, line).strip()
    where = f"{file if near.startswith('..') else near}:{line} in {function}"
    return f"{where}   {source}" if source else where


def summary(tests: Sequence[dict[str, Any]], most: int) -> list[str]:
    """The table of the hungriest tests; each row is what its report carries."""
    ranked = sorted(tests, key=lambda test: (-test["peak_bytes"], -(test["left_bytes"] or 0), test["nodeid"]))
    shown = ranked[:most] if most else ranked
    several = len({row["device"] for test in tests for row in test["devices"]}) > 1
    lines = [f"{'peak':>10}  {'left over':>10}  {'allocations':>11}  {'allocated':>10}  test"]
    for test in shown:
        lines.append(_row(test, test["nodeid"]))
        if several:
            lines.extend(_row(row, f"  on {row['device']}") for row in test["devices"])
    if len(shown) < len(ranked):
        rest = len(ranked) - len(shown)
        lines.append(f"… and {counted(rest, 'more test')} (--dpmem-most=0 prints all)")
    if any(test["left_bytes"] is None for test in shown):
        lines.append("–: not known, as the failure keeps what the test's frames held")
    return lines


def _row(numbers: dict[str, Any], name: str) -> str:
    left = "–" if numbers["left_bytes"] is None else _size(numbers["left_bytes"])
    allocated = f"{_count(numbers['alloc_count']):>11}  {_size(numbers['allocated_bytes']):>10}"
    return f"{_size(numbers['peak_bytes']):>10}  {left:>10}  {allocated}  {name}"
