"""What a notebook has in use: by variable and by cell; and what one cell did.

One search for holders answers for everything on a page, so all of it is of one moment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dpmem import _cells, _holders, _live, _native, _recording, _runtime
from dpmem._page import Finding, Page, Row, Section

#: Shows every row of what is in use.
ALL = "%dpmem --all"

_LIBRARY = "kept by libraries or the runtime itself"
_QUEUED = "waiting for queued work: dpmem.synchronize() waits for it"
#: What the ledger calls what it found when it began, and what a person would.
_BEFORE, _BEFORE_SHOWN = "before start", "before recording began"


@dataclass
class Block:
    """A block in use: who holds it, and which line of which cell made it."""

    bytes: int
    state: str
    stack: list[Any]
    since: int
    #: Everything that is known of each holder.
    holders: list[dict[str, Any]] = field(default_factory=list)
    more: int = 0
    #: Why there is no stack; None if there is one.
    origin: str | None = None

    @property
    def owners(self) -> list[dict[str, Any]]:
        """Holders that are not the notebook's own memory, nearest to a person first."""
        own = [holder for holder in self.holders if not holder["notebook"] and not holder["outside"]]
        return sorted(own, key=lambda holder: (not holder["root"].startswith("__main__."), len(holder["path"])))

    def names(self) -> list[str]:
        """Every holder, the one that the block is listed under first."""
        own = self.owners
        kept = sorted(
            (holder for holder in self.holders if holder["notebook"]),
            key=lambda holder: (not holder["path"].startswith("Out["), len(holder["path"])),
        )
        rest = [holder for holder in self.holders if holder["outside"] and not holder["notebook"]]
        return list(dict.fromkeys(_short(holder["path"]) for holder in (*own, *kept, *rest)))

    def variable(self) -> str:
        """The name that it is listed under."""
        if self.state == "in_flight":
            return _QUEUED
        if self.owners:
            return _short(self.owners[0]["root"])
        return self.names()[0] if any(holder["notebook"] for holder in self.holders) else _LIBRARY

    def frames(self) -> list[Any]:
        """The user's own frames, innermost first."""
        return [frame for frame in self.stack if not frame[3]]

    def where(self) -> str:
        """The line that made it."""
        return self._place(self.frames()[0]) if self.frames() else self._lineless()

    def cell(self) -> str:
        """The cell that ran when it was made, or the file that it was made in."""
        frames = [frame for frame in self.frames() if _cells.is_cell(frame[0])]
        outermost = [frame for frame in frames if frame[2] == "<module>"][-1:] or frames[:1]
        if outermost:
            return _cells.title(outermost[0][0], self.since) or outermost[0][0]
        return str(self.frames()[0][0]) if self.frames() else self._lineless()

    def _lineless(self) -> str:
        return _BEFORE_SHOWN if self.origin == _BEFORE else self.origin or "a line of a library"

    def _place(self, frame: Any) -> str:
        file, line, function, _ = frame
        return _cells.place(file, line, function, self.since)


@dataclass
class Memory:
    """Everything in use at one moment."""

    blocks: list[Block]
    #: The report so far, as `dpmem run --json` has it.
    report: dict[str, Any]
    #: What was not found out, in words; empty if nothing.
    gap: str

    @property
    def bytes(self) -> int:
        """Bytes of all blocks."""
        return sum(block.bytes for block in self.blocks)

    def devices(self) -> str:
        """Names of the devices that have memory in use."""
        return ", ".join(
            sorted({row["device"] for row in self.report["usm"] if row["device"] and row["current_bytes"]})
        )


def memory() -> Memory:
    """Look at everything that is in use."""
    _runtime.name_devices()
    blocks = _native.live_blocks()
    held = _holders.find([(block[0], block[1]) for block in blocks], pending=_live._pending(blocks))
    found = {row[0]: row for row in held.rows()}
    looked_at = [
        Block(
            bytes=block[1],
            state=found[block[0]][1],
            stack=block[5],
            since=block[7],
            holders=held.details(block[0]),
            more=found[block[0]][4],
            origin=block[6],
        )
        for block in blocks
    ]
    looked_at.sort(key=lambda block: -block.bytes)
    report = json.loads(_recording.build(held, drained=not _runtime.busy_devices()).json)
    return Memory(looked_at, report, _live._gap(held))


def by_variable(blocks: Iterable[Block], title: str = "By variable", nothing: str = "") -> Section:
    """Blocks under the name that a person would look for them by, each once."""
    groups: dict[str, list[Block]] = {}
    for block in blocks:
        groups.setdefault(block.variable(), []).append(block)
    rows = []
    for name, group in groups.items():
        also = list(dict.fromkeys(path for block in group for path in block.names()))
        single = len(group) == 1 and bool(also) and name not in (_LIBRARY, _QUEUED)
        shown = also[0] if single else f"{name} ({counted(len(group))})"
        also = [] if name in (_LIBRARY, _QUEUED) else [path for path in also if path != shown and path != name]
        more = sum(block.more for block in group)
        also.extend([f"{_native.human_count(more)} more"] if more else [])
        places = list(dict.fromkeys(block.where() for block in group))
        where = places[0] if len(places) == 1 else f"{_native.human_count(len(places))} lines"
        rows.append(Row(_sum(group), shown, where, also, "also" if single else "holders:"))
    rows.sort(key=lambda row: -row.bytes)
    return Section(title, rows, nothing)


def by_cell(blocks: Iterable[Block]) -> Section:
    """Blocks under the cell that ran when they were made, with the lines."""
    groups: dict[str, list[Block]] = {}
    for block in blocks:
        groups.setdefault(block.cell(), []).append(block)
    rows = []
    for cell, group in groups.items():
        lines: dict[str, int] = {}
        for block in group:
            place = block.where().removeprefix(f"{cell}, ")
            lines[place] = lines.get(place, 0) + block.bytes
        parts = [
            f"{place} ({_native.human_size(size)})" for place, size in sorted(lines.items(), key=lambda item: -item[1])
        ]
        rows.append(Row(_sum(group), cell, counted(len(group)), [] if list(lines) == [cell] else parts, "from"))
    rows.sort(key=lambda row: -row.bytes)
    return Section("By cell", rows)


def in_use(began: int | None, rows_max: int | None) -> Page:
    """The page of `%dpmem`; `began` is the number of the cell in which recording began, if that is known."""
    now = memory()
    since = f" in In[{began}]" if began is not None else ""
    size = _native.human_size
    if not now.blocks:
        head = f"No USM is in use; recording began{since or ' earlier'}."
        return Page(head, notes=_notes(now))
    head = (
        f"In use: {size(now.bytes)} in {counted(len(now.blocks))} on {now.devices() or 'no one device'}; "
        f"at most {size(now.report['peak']['bytes'])} since recording began{since}"
    )
    found = [finding(row) for row in now.report["findings"] if row["code"].startswith("DPM2")]
    sections = [by_variable(now.blocks), by_cell(now.blocks)]
    return Page(head, sections, found, _notes(now), rows_max, ALL)


def finding(row: dict[str, Any]) -> Finding:
    """A finding of the report, its line in a person's words."""
    where = ""
    if row["file"]:
        cell = _cells.title(row["file"])
        where = f"{cell}, line {row['line']}" if cell else f"{row['file']}:{row['line']}"
    return Finding(row["severity"], row["code"], row["name"], where, row["message"], row["advice"])


def _notes(now: Memory) -> list[str]:
    notes = [now.gap] if now.gap else []
    if any(block.origin == _BEFORE for block in now.blocks):
        notes.append(
            "What was there before recording began has no line and no cell, and what only C++ code held then is not "
            "counted. Begin with `%dpmem on` to see all."
        )
    return notes + cached()


def cached() -> list[str]:
    """A line on what the pool keeps, if it does."""
    kept = _native.pool_reading(None)["cached_bytes"]
    return [f"The pool keeps {_native.human_size(kept)} more: dpmem.empty_cache() gives it back."] if kept else []


def _short(path: str) -> str:
    """A path as the user would type it."""
    return path.replace("__main__.", "")


def _sum(blocks: list[Block]) -> int:
    return sum(block.bytes for block in blocks)


def counted(count: int) -> str:
    """`1 block`, `3 blocks`."""
    return f"{_native.human_count(count)} block{'' if count == 1 else 's'}"
