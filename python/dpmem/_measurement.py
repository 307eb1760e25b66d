"""What one cell does to the memory of devices, from the line that asks to the cell's end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from dpmem import _cells, _native, _notebook, _notebook_memory, _recording, _tracking
from dpmem._page import Finding, Page, Row, Section


class Measurement:
    """Begins at once; hands a page to `done` when the cell that is running has ended."""

    def __init__(self, shell: Any, file: str, done: Callable[[Page], None]) -> None:
        self._shell, self._file, self._done = shell, file, done
        self._number = _cells.newest(file)
        #: Cells that this one has run in turn and that have not ended yet.
        self._inner = 0
        self._seen = _evidence(_findings_so_far())
        self._before = sum(size for _, size in _native.live_sizes())
        self._begun = _native.ticks()
        self._region = _tracking.track("cell")
        self._region.__enter__()
        shell.events.register("pre_run_cell", self._on_begin)
        shell.events.register("post_run_cell", self._on_end)

    def give_up(self) -> None:
        """End without a page."""
        self._shell.events.unregister("pre_run_cell", self._on_begin)
        self._shell.events.unregister("post_run_cell", self._on_end)
        self._region.__exit__(None, None, None)

    def _on_begin(self, _info: object) -> None:
        self._inner += 1

    def _on_end(self, _result: object) -> None:
        if self._inner:
            self._inner -= 1
            return
        self.give_up()
        self._done(self._page())

    def _page(self) -> Page:
        region = self._region
        title = f"cell In[{self._number}]" if self._number is not None else "this cell"
        if region.allocated_bytes is None or region.duration_s is None:
            return Page(f"{title}: recording was stopped or begun anew meanwhile, so nothing is known of it.")
        now = _notebook_memory.memory()
        own = [block for block in now.blocks if block.since >= self._begun]
        size = _native.human_size
        difference = now.bytes - self._before
        peak = "unknown" if region.peak_bytes is None else size(region.peak_bytes)
        above = "" if region.peak_bytes is None else f" (+{size(max(region.peak_bytes - self._before, 0))})"
        head = (
            f"{title}, {_native.human_duration(region.duration_s)}: "
            f"in use {size(now.bytes)} ({'-' if difference < 0 else '+'}{size(abs(difference))}), peak {peak}{above}, "
            f"allocated {size(region.allocated_bytes)} in {_notebook_memory.counted(region.alloc_count or 0)}"
        )
        left = _notebook_memory.by_variable(own, "Left by this cell", "nothing")
        findings = self._findings(now, own)
        notes = [now.gap] if now.gap else []
        if findings and len(_cells.numbers(self._file)) > 1:
            notes.append("This code has run more than once: findings count all its runs since recording began.")
        return Page(head, [left, self._lines()], findings, notes)

    def _lines(self) -> Section:
        """What each line allocated, whether it is still there or not."""
        sums: dict[str, list[Any]] = {}
        for stack, origin, blocks, total in self._region._allocating:
            frame = next((frame for frame in stack if not frame[3]), None)
            where = _cells.place(*frame[:3], self._begun_in(frame[0])) if frame else origin or "a thread without Python"
            source = _notebook.as_typed(_cells.line_of(frame[0], frame[1])) if frame else ""
            entry = sums.setdefault(where, [0, 0, source])
            entry[0] += total
            entry[1] += blocks
        rows = [
            Row(total, where, _notebook_memory.counted(blocks), [source] if source else [], "")
            for where, (total, blocks, source) in sums.items()
        ]
        rows.sort(key=lambda row: -row.bytes)
        return Section("Allocated, by line", rows)

    def _begun_in(self, file: str) -> int | None:
        """A moment at which this cell was running, for lines of its own."""
        return self._begun if file == self._file else None

    def _findings(self, now: _notebook_memory.Memory, own: list[_notebook_memory.Block]) -> list[Finding]:
        """Those on the cell's own lines, and on lines of others that it has run."""
        left = {tuple(frame[:2]) for block in own for frame in block.frames()[:1]}
        evidence = _evidence(now.report["findings"])
        found = []
        for row in now.report["findings"]:
            key = (row["code"], row["file"], row["line"])
            about_what_is_left = row["code"].startswith("DPM2")
            its_doing = (
                (row["file"], row["line"]) in left if about_what_is_left else self._seen.get(key) != evidence[key]
            )
            if row["file"] is not None and (row["file"] == self._file or its_doing):
                found.append(_notebook_memory.finding(row))
        return found


def _findings_so_far() -> list[dict[str, Any]]:
    report = json.loads(_recording.build(None, drained=True).json)
    found: list[dict[str, Any]] = report["findings"]
    return found


def _evidence(findings: list[dict[str, Any]]) -> dict[tuple[Any, ...], Any]:
    """What findings rest on; durations apart, which are told a little more exactly as time goes by."""
    return {
        (row["code"], row["file"], row["line"]): {
            key: value for key, value in row["evidence"].items() if not isinstance(value, float)
        }
        for row in findings
    }
