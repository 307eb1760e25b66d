"""The resume file of a job: which rows are done, and what the reduction has come to.

A record is appended after a chunk's rows are in the output, so whatever ends the process between any two system calls
leaves rows that are done and not recorded at worst, and those are done again. Each record is a line of JSON, followed
by the bytes of its arrays; one that is not whole, or not what its checksum says, is the end of the file.

A power failure can lose what the kernel has not written yet. So from time to time the output is synchronised and a
record says so; of what was recorded before the machine was started anew, only what such a record confirms counts.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy

from dpmem._combine import Part
from dpmem._outputs import TOKEN_BYTES, lock

_VERSION = 1
_BEGIN = b'{"dpmem_resume"'
_COMPACTED = ".dpmem-new"
#: How long a power failure may throw a job back, in seconds.
_SYNC_S = 5.0
#: The file is written anew when it is that many bytes, and four times what it must hold.
_COMPACT_BYTES = 64 << 20
_State = list[tuple[int, Part]]


@dataclass
class Progress:
    """How far an interrupted job came."""

    done: int = 0
    #: Rows of its chunks.
    rows: int | None = None
    #: The reduction's state at some moment, and the parts pushed since.
    state: _State = field(default_factory=list)
    parts: list[Part | None] = field(default_factory=list)
    #: The output's mark of the last row that is done.
    mark: int | None = None


class Journal:
    """Keeps the resume file of one job."""

    def __init__(self, path: str, facts: dict[str, Any]) -> None:
        # The program may change its folder meanwhile.
        self._path, self._facts = os.path.abspath(path), json.loads(json.dumps(facts))
        self._file = -1
        self._length = 0
        self._mark: int | None = None
        self._synced_s = time.monotonic()
        #: Marks the output that belongs to this file.
        self.token = os.urandom(TOKEN_BYTES)

    def read(self) -> Progress | None:
        """What an interrupted job has recorded; None if there was none.

        Raises
        ------
        ValueError
            The file is no resume file, or one of another job; the text says what is different.
        """
        try:
            with open(self._path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        line, found, _ = data.partition(b"\n")
        if not found and data[: len(_BEGIN)] == _BEGIN[: len(data)]:
            # Whoever made it got no further than that.
            return None
        try:
            head = json.loads(line)
            facts, token = head["facts"] if head["dpmem_resume"] == _VERSION else None, bytes.fromhex(head["token"])
        except (ValueError, KeyError, TypeError):
            facts, token = None, b""
        if not isinstance(facts, dict):
            raise self.refusal("is no resume file of this version")
        others = [name for name in self._facts if facts.get(name) != self._facts[name]]
        if others:
            told = "; ".join(f"{name} was {facts.get(name)!r}, is {self._facts[name]!r}" for name in others)
            raise self.refusal(f"belongs to another job ({told})")
        progress = _replay(data, len(line) + 1)
        self.token, self._length, self._mark = token, progress[1], progress[0].mark
        return progress[0]

    def refusal(self, why: str) -> ValueError:
        """An error that says why the file is not gone on from."""
        return ValueError(f"`{self._path}` {why}; remove it to begin anew")

    def begin(self, progress: Progress | None, rows: int) -> None:
        """Begin the file, or go on with it behind the last record that counts."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o666)
        lock(self._file, self._path)
        if progress is None:
            self._length = 0
        os.ftruncate(self._file, self._length)
        if progress is None:
            self._append(self._head())
        self._append(_record({"boot": _boot(), "chunk_rows": rows}, []))

    def _head(self) -> bytes:
        head = {"dpmem_resume": _VERSION, "facts": self._facts, "token": self.token.hex()}
        return json.dumps(head).encode() + b"\n"

    def is_open(self) -> bool:
        """Whether it has been begun."""
        return self._file >= 0

    def record(self, done: int, part: Part | None, mark: int | None = None) -> None:
        """Rows up to `done` are in the output, and `part` belongs to the chunk that ends there."""
        parts = [] if part is None else [(0, part)]
        self._append(_record({"done": done, "pushed": part is not None, "mark": mark}, parts))
        self._mark = mark

    def is_due(self) -> bool:
        """Whether the output should be synchronised now."""
        return time.monotonic() - self._synced_s >= _SYNC_S

    def synced(self, done: int, state: _State, rows: int) -> None:
        """All that is recorded is on the disk, in the output; `state` is the reduction's."""
        held = sum(array.nbytes for _, part in state for array in part)
        if self._length > max(_COMPACT_BYTES, 4 * held):
            self._compact(done, state, rows)
        self._append(_record({"synced": done}, []))
        os.fdatasync(self._file)
        self._synced_s = time.monotonic()

    def _compact(self, done: int, state: _State, rows: int) -> None:
        """Write the file anew with nothing but the state."""
        beside = self._path + _COMPACTED
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        before, self._file, self._length = (self._file, self._length), file, 0
        try:
            lock(file, beside)
            self._append(self._head())
            self._append(_record({"boot": _boot(), "chunk_rows": rows}, []))
            self._append(_record({"state": done, "levels": [level for level, _ in state], "mark": self._mark}, state))
            os.fsync(file)
            os.replace(beside, self._path)
        except BaseException:
            self._file, self._length = before
            os.close(file)
            raise
        os.close(before[0])

    def _append(self, data: bytes) -> None:
        at = self._length
        while data:
            try:
                written = os.pwrite(self._file, data, at)
                if written == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as error:
                # What is there of the record is no record, and the next one goes over it.
                where = f"{os.strerror(error.errno or 0)} while writing at offset {at} of"
                raise OSError(error.errno, where, self._path) from None
            data, at = data[written:], at + written
        self._length = at

    def close(self) -> None:
        """Keep the file for a resumed job."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def finish(self) -> None:
        """The job is done: nobody will resume it."""
        self.close()
        # Whoever has removed one of them wanted what happens here.
        for path in (self._path, self._path + _COMPACTED):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _record(head: dict[str, Any], parts: _State) -> bytes:
    arrays = [array for _, part in parts for array in part]
    payload = b"".join(array.tobytes() for array in arrays)
    shapes = [[[array.dtype.str, list(array.shape)] for array in part] for _, part in parts]
    head = {**head, "parts": shapes, "bytes": len(payload)}
    text = json.dumps(head).encode()
    check = zlib.crc32(payload, zlib.crc32(text))
    return b"%08x " % check + text + b"\n" + payload + b"\n"


def _replay(data: bytes, at: int) -> tuple[Progress, int]:
    """What the records from `at` on say, and where the last one that counts ends."""
    boot, progress, end = _boot(), Progress(), at
    known, certain = "", (Progress(), at)
    while True:
        record = _read_record(data, at)
        if record is None:
            break
        head, parts, at = record
        if "boot" in head:
            progress.rows = head["chunk_rows"]
            if known != head["boot"]:
                # Whoever went on after the machine had been started anew has kept only what was on the disk.
                known, certain = head["boot"], (_copy(progress), at)
        elif "state" in head:
            progress.done, progress.parts, progress.mark = head["state"], [], head["mark"]
            progress.state = list(zip(head["levels"], parts, strict=True))
        elif "synced" in head:
            certain = (_copy(progress), at)
        else:
            progress.done, progress.mark = head["done"], head["mark"]
            progress.parts.append(parts[0] if head["pushed"] else None)
        end = at
    if known not in ("", boot):
        return certain
    return progress, end


def _copy(progress: Progress) -> Progress:
    return Progress(progress.done, progress.rows, list(progress.state), list(progress.parts), progress.mark)


def _read_record(data: bytes, at: int) -> tuple[dict[str, Any], list[Part], int] | None:
    line_end = data.find(b"\n", at)
    if line_end < 0 or line_end - at < 9:
        return None
    text = data[at + 9 : line_end]
    try:
        check, head = int(data[at : at + 8], 16), json.loads(text)
        begin, end = line_end + 1, line_end + 1 + head["bytes"]
    except (ValueError, KeyError, TypeError):
        return None
    payload = data[begin:end]
    if len(payload) != head["bytes"] or data[end : end + 1] != b"\n" or zlib.crc32(payload, zlib.crc32(text)) != check:
        return None
    parts, place = [], 0
    for shapes in head["parts"]:
        part = []
        for descr, shape in shapes:
            dtype = numpy.dtype(descr)
            count = int(numpy.prod(shape, dtype=numpy.int64))
            part.append(numpy.frombuffer(payload, dtype, count, place).reshape(shape))
            place += count * dtype.itemsize
        parts.append(part)
    return head, parts, end + 1


def _boot() -> str:
    """Tells one start of the machine from another."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return "unknown"
