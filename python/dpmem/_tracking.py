"""`dpmem.start`, `stop`, `is_tracking`, and `track` for a part of a program."""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from dpmem import _cells, _failure, _native, _out_of_memory, _recording, _runtime

#: Starting and stopping is one thread's business at a time.
_lock = threading.RLock()
_Function = TypeVar("_Function", bound=Callable[..., Any])


def start(stack_depth: int = 16) -> None:
    """Start recording every USM allocation of this process.

    May be called at any time. If arrays exist already, they are found and counted as in use, at a site called
    `before start`. Does nothing if recording is on, or under `dpmem run`.

    Parameters
    ----------
    stack_depth
        Python frames to keep of each allocation, 0 to 128; 0 records no stacks.

    Raises
    ------
    ValueError
        `stack_depth` is out of range.
    RuntimeError
        The runtime in this process can't be observed, or this is a forked child. The program is left untouched.
    """
    if not isinstance(stack_depth, int) or not 0 <= stack_depth <= 128:
        raise ValueError(f"expected a `stack_depth` of 0 to 128 frames, got {stack_depth!r}")
    with _lock:
        if not _recording.belongs_to_run and not is_tracking():
            _recording.begin_late(stack_depth=stack_depth)
            _failure.failures.clear()
            _out_of_memory.install()


def stop() -> None:
    """Stop recording and take the hook out. What has been recorded can still be read, as of this moment.

    Does nothing under `dpmem run`, whose report needs the rest.
    """
    with _lock:
        if not _recording.belongs_to_run:
            if _native.hook_status()["phase"] == "installed":
                _runtime.name_devices()
            _native.hook_stop()


def is_tracking() -> bool:
    """Whether allocations are being recorded."""
    return bool(_native.hook_status()["recording"])


class track:
    """Follow the memory of a part of a program: `with dpmem.track("load") as t: ...`, or as a decorator.

    Regions nest and may overlap. Starts recording for its duration if that is off. At the end it waits for queued work,
    so that memory which only waits for a kernel doesn't count as left behind.

    Parameters
    ----------
    name
        What to call it in reports; a decorated function's own name if left out.
    wait
        Whether to wait for queued work at the end.

    Attributes
    ----------
    peak_bytes : int or None
        The most USM in use at a time during the region, over all devices and kinds, what was there before included.
        None if more than 64 regions were open at once.
    allocated_bytes : int
        Bytes of all allocations made during it.
    alloc_count : int
        Number of allocations made during it.
    leaked_bytes : int
        Bytes of blocks that were allocated during it and are still in use at its end.
    duration_s : float
        How long it took, in seconds.

    The numbers are those of the dpmem ledger. They are None before the end of the region, and if recording was
    stopped or started anew meanwhile.
    """

    #: Open regions that need the recording which the first of them started.
    _users = 0

    def __init__(self, name: str | None = None, *, wait: bool = True) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(
                f"expected a name for the region, got {name!r}; write @dpmem.track() to decorate a function"
            )
        self.name = name if name is not None else "region"
        self._named = name is not None
        self._wait = wait
        self._region: _native.OpenRegion | None = None
        self._counted = False
        self._whole = True
        self._begun = 0.0
        self.peak_bytes: int | None = None
        self.allocated_bytes: int | None = None
        self.alloc_count: int | None = None
        self.leaked_bytes: int | None = None
        self.leaked_count: int | None = None
        self.duration_s: float | None = None
        self._allocating: list[_native._Place] = []
        self._leaving: list[_native._Place] = []

    def __enter__(self) -> track:
        """Begin the region."""
        if self._region is not None:
            raise RuntimeError(f"region `{self.name}` is open already: make a new dpmem.track for each use")
        with _lock:
            self._counted = track._users > 0 or not is_tracking()
            if self._counted:
                start()
                track._users += 1
        self._begun = time.perf_counter()
        self._region = _native.OpenRegion()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the region; an exception passes."""
        region, self._region = self._region, None
        if region is None:
            return
        try:
            if self._wait:
                _runtime.drain(_recording.DRAIN_S)
        finally:
            self.duration_s = time.perf_counter() - self._begun
            whole, *numbers, self._allocating, self._leaving = region.close()
            self._whole = whole and is_tracking()
            if self._whole:
                self.peak_bytes, self.allocated_bytes, self.alloc_count, self.leaked_bytes, self.leaked_count = numbers
            with _lock:
                if self._counted:
                    track._users -= 1
                    if track._users == 0:
                        stop()

    def __call__(self, function: _Function) -> _Function:
        """Decorate a function: each call is a region of its own; `function.last` is the newest.

        A coroutine function's region lasts until the coroutine ends. Generators are refused with a TypeError: what
        runs between two of their steps is not theirs.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"expected a function to track, got the generator {function!r}: put `with` in its body")

        def begin() -> track:
            name = self.name if self._named else getattr(function, "__qualname__", "region")
            tracked.last = region = track(name, wait=self._wait)  # type: ignore[attr-defined]
            return region

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def tracked(*arguments: Any, **keywords: Any) -> Any:
                with begin():
                    return await function(*arguments, **keywords)

        else:

            @functools.wraps(function)
            def tracked(*arguments: Any, **keywords: Any) -> Any:
                with begin():
                    return function(*arguments, **keywords)

        tracked.last = None  # type: ignore[attr-defined]
        return tracked  # type: ignore[return-value]

    def report(self) -> str:
        """Describe the region: its numbers, the lines that allocated most, and what it left behind."""
        if self.allocated_bytes is None or self.duration_s is None:
            why = "recording stopped during it, so nothing is known" if not self._whole else "not finished"
            return f"{self.name}: {why}"
        size = _native.human_size
        peak = "unknown" if self.peak_bytes is None else size(self.peak_bytes)
        number = _native.human_count
        lines = [
            f"{self.name}: {_native.human_duration(self.duration_s)}, peak {peak}, "
            f"allocated {size(self.allocated_bytes)} in {number(self.alloc_count or 0)}, "
            f"left {size(self.leaked_bytes or 0)} in {number(self.leaked_count or 0)}"
        ]
        for title, places in (("allocated", self._allocating), ("left", self._leaving)):
            merged = _by_line(places)
            lines.extend(
                f"  {title:<9} {size(total):>10} in {_native.human_count(count):>7}  {where}"
                for where, count, total in merged[:5]
            )
            if len(merged) > 5:
                lines.append(f"  {title:<9} {'…':>10}    {len(merged) - 5} more lines")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """One line."""
        if self.allocated_bytes is None:
            return f"<dpmem.track {self.name!r}: {'open' if self._region is not None else 'not entered'}>"
        peak = "unknown" if self.peak_bytes is None else _native.human_size(self.peak_bytes)
        return f"<dpmem.track {self.name!r}: peak {peak}, left {_native.human_size(self.leaked_bytes or 0)}>"

    __str__ = report

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self.report())}</pre>"


def _by_line(places: list[_native._Place]) -> list[tuple[str, int, int]]:
    """Sum places up by the user's line: where, blocks, bytes; largest first."""
    sums: dict[str, tuple[int, int]] = {}
    for stack, origin, count, total in places:
        frame = next((frame for frame in stack if not frame[3]), stack[0] if stack else None)
        where = _cells.place(*frame[:3]) if frame else (origin or "unknown")
        known = sums.get(where, (0, 0))
        sums[where] = (known[0] + count, known[1] + total)
    return sorted(((where, *sum_) for where, sum_ in sums.items()), key=lambda row: -row[2])
