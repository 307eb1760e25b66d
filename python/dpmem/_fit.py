"""How much device memory a function takes, and how long, by the size of the chunk: learnt on small parts of the data.

What counts is all that a call allocates, as if nothing were freed before its end: work is queued, and dpnp keeps
temporaries until the kernels that use them are done, so how many there are at a time is a matter of luck. The sum
isn't. Only where it is far more than what was ever there at a time (a function with a loop of its own), and would make
chunks inefficient, does four times the peak stand in for it.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from dpmem import _native, _out_of_memory, _runtime

#: Bytes of the first two parts that a function is tried on. Small ones cost little; their ratio tells constant parts.
_PART_BYTES = (256 << 10, 1 << 20)
#: A part that took longer is not tried again for a better time.
_LONG_S = 0.1
#: The pool's blocks are up to an eighth larger than asked for, and data elsewhere may be a little different.
MARGIN = 1.2
#: Each block takes at least so much of the pool.
_BLOCK_BYTES = 512
#: Device bytes by input byte that are assumed where nothing can be recorded.
UNKNOWN_FACTOR = 16
#: Peaks this far below the sum of allocations show that a function frees what it allocates as it goes.
_LOOPING = 8
_DRAIN_S = 60.0


@dataclass(frozen=True)
class Probe:
    """One call on a part of the data."""

    rows: int
    #: Bytes of the arrays that the function was given.
    input_bytes: int
    #: All that it allocated, and the most of that at a time. None: nothing could be recorded.
    allocated_bytes: int | None
    peak_bytes: int | None
    #: Its largest block, as the lines that allocate tell.
    largest_bytes: int | None
    duration_s: float
    #: Bytes of the result, if it is an array.
    result_bytes: int

    def need_bytes(self, looping: bool) -> int | None:
        """What to plan for."""
        if self.allocated_bytes is None or self.peak_bytes is None:
            return self.allocated_bytes
        return min(self.allocated_bytes, _LOOPING // 2 * self.peak_bytes) if looping else self.allocated_bytes


class Prober:
    """Calls a function on parts of a source. Works on copies, keeps nothing, and waits for all work it has queued."""

    def __init__(
        self, step: Callable[[tuple[Any, ...]], tuple[Any, Any]], source: Any, queue: Any, recorded: bool
    ) -> None:
        self._step, self._source, self._queue, self._recorded = step, source, queue, recorded

    def sizes(self) -> tuple[int, int]:
        """Rows of the first two parts: different, and two at least for the second."""
        row = max(self._source.row_nbytes, 1)
        small = max(1, min(_PART_BYTES[0] // row, len(self._source) // 2))
        large = max(small + 1, min(_PART_BYTES[1] // row, len(self._source)))
        return small, large

    def call(self, rows: int) -> tuple[Probe, Any]:
        """Call the function on so many rows, twice if that is quick; the result is that of the last call."""
        probe, result = self._once(rows)
        # Twice: the first call of a function builds kernels, and touches memory that is new.
        if probe.duration_s < _LONG_S:
            del result
            again, result = self._once(rows)
            seconds = min(probe.duration_s, again.duration_s)
            probe = Probe(**{**vars(again), "duration_s": seconds})
        return probe, result

    def give_up(self) -> None:
        """After running out of memory: let go of what the failed call has left."""
        drained(self._queue)

    def _once(self, rows: int) -> tuple[Probe, Any]:
        import dpnp

        parts = [dpnp.array(array, sycl_queue=self._queue) for array in _sample(self._source, rows)]
        inputs = sum(int(part.nbytes) for part in parts)
        self._settle()
        before = _native.OpenRegion().close()[1] if self._recorded else None
        region = _native.OpenRegion() if self._recorded else None
        begun = time.perf_counter()
        try:
            result = self._step(tuple(parts))
            self._settle()
            duration = time.perf_counter() - begun
        finally:
            closed = region.close() if region is not None else None
        allocated = peak = largest = None
        if closed is not None and closed[0]:
            allocated = closed[2] + _BLOCK_BYTES * closed[3]
            largest = max((total // count for _, _, count, total in closed[6]), default=0)
            if closed[1] is not None and before is not None:
                peak = closed[1] - before
        return Probe(rows, inputs, allocated, peak, largest, duration, size_of(result[0])), result

    def _settle(self) -> None:
        settle(self._queue)


def settle(queue: Any) -> None:
    """Wait for all work of a queue, that which lets go of its arguments included."""
    from dpctl.utils import SequentialOrderManager

    from dpmem._buffers import Fence

    # Not the manager's own `wait`: that lets the GIL go, and other threads change what it goes through.
    manager = SequentialOrderManager[queue]
    Fence([*manager.submitted_events, *manager.host_task_events, queue.submit_barrier()]).wait()


def _sample(source: Any, rows: int) -> list[Any]:
    """So many rows on the host, from four places of the data, which may differ; repeated if there are not enough."""
    there = len(source)
    taken = min(rows, there)
    places = min(4, taken)
    pieces: list[list[Any]] = []
    for place in range(places):
        low, high = taken * place // places, taken * (place + 1) // places
        start = (there - taken) * place // max(places - 1, 1) + low
        read = source.read(start, start + high - low)
        pieces.append(list(read) if isinstance(read, tuple) else [read])
    # A negative axis is another one for sources of other dimensions.
    axes = [part.axis for part in source.parts]
    joined = [numpy.concatenate(arrays, axis=axis) for axis, *arrays in zip(axes, *pieces, strict=True)]
    if taken < rows:
        order = numpy.resize(numpy.arange(taken), rows)
        joined = [numpy.take(array, order, axis=axis) for axis, array in zip(axes, joined, strict=True)]
    return joined


def size_of(result: Any) -> int:
    """Bytes of an array, 0 of anything else."""
    size = getattr(result, "nbytes", 0)
    return int(size) if isinstance(size, (int, numpy.integer)) else 0


class Need:
    """Device bytes that a call needs beyond its input, by rows."""

    def __init__(self, probes: list[Probe], looping: bool = False, unbounded: bool = False) -> None:
        self.probes = probes
        #: Whether a straight line through the probes is to be trusted.
        self.is_linear = True
        #: Rows beyond which the fit says nothing.
        self.most_rows: int | None = None
        self.per_row = self.fixed = 0.0
        self._power: tuple[float, float, int] | None = None
        # Where the data decides how large a result is, all of the input may be in it.
        self._extra = max(probe.input_bytes / probe.rows for probe in probes) if unbounded else 0.0
        points = [(probe.rows, probe.need_bytes(looping)) for probe in probes]
        self.is_known = all(need is not None for _, need in points)
        if not self.is_known:
            self.per_row = max(probe.input_bytes / probe.rows for probe in probes) * UNKNOWN_FACTOR
            return
        self._fit([(rows, float(need or 0)) for rows, need in points])

    def _fit(self, points: list[tuple[int, float]]) -> None:
        (n1, y1), (n2, y2) = points[0], points[-1]
        self.per_row = (y2 - y1) / (n2 - n1)
        self.fixed = y1 - self.per_row * n1
        least = 64 * _BLOCK_BYTES
        if self.per_row < 0:
            # Fewer bytes for more rows: the data decides.
            self.is_linear = y1 - y2 < least
            self.per_row, self.fixed = max(y / n for n, y in points), max(y for _, y in points)
        elif self.fixed < -max(0.05 * y1, least):
            self.is_linear = False
            rises = [math.log(yb / ya) / math.log(nb / na) for (na, ya), (nb, yb) in _pairs(points) if ya > 0]
            exponent = max(1.0, *rises) if rises else 2.0
            self._power = (y2, exponent, n2)
            if len(rises) > 1 and max(rises) - min(rises) > 0.2:
                self.most_rows = 4 * n2
        self.fixed = max(self.fixed, 0.0)

    def bytes_for(self, rows: int) -> int:
        """For a chunk of so many rows, with a margin."""
        need = self.fixed + self.per_row * rows
        if self._power is not None:
            at, exponent, base = self._power
            need = max(need, at * (rows / base) ** exponent) if rows > base else max(need, at)
        return math.ceil((need + self._extra * rows) * MARGIN)

    def result_bytes(self, rows: int) -> int:
        """The size of one result."""
        first, last = self.probes[0], self.probes[-1]
        rise = max(0.0, (last.result_bytes - first.result_bytes) / max(last.rows - first.rows, 1))
        return math.ceil(last.result_bytes + rise * max(0, rows - last.rows))

    def largest_block(self, rows: int) -> int:
        """The largest single allocation of a call."""
        first, last = self.probes[0], self.probes[-1]
        if first.largest_bytes is None or last.largest_bytes is None:
            return 0
        if self._power is not None:
            return int(last.largest_bytes * max(1.0, rows / last.rows) ** self._power[1])
        rise = max(0.0, (last.largest_bytes - first.largest_bytes) / (last.rows - first.rows))
        return math.ceil(last.largest_bytes + rise * max(0, rows - last.rows))


def is_looping(probes: list[Probe]) -> bool:
    """Whether the function frees and allocates again and again, so that the sum says little."""
    last = probes[-1]
    return bool(last.peak_bytes and last.allocated_bytes and last.allocated_bytes > _LOOPING * last.peak_bytes)


def seconds_per_byte(probes: list[Probe]) -> tuple[float, float]:
    """Seconds that a call takes whatever the chunk, and seconds for each byte of it."""
    first, last = probes[0], probes[-1]
    whole = last.duration_s / max(last.input_bytes, 1)
    grown = (last.duration_s - first.duration_s) / max(last.input_bytes - first.input_bytes, 1)
    each = min(max(grown, whole / 8), whole)
    return max(last.duration_s - each * last.input_bytes, 0.0), each


def _pairs(points: list[tuple[int, float]]) -> list[tuple[tuple[int, float], tuple[int, float]]]:
    return list(itertools.pairwise(points))


def drained(queue: Any) -> None:
    """Let go of what queued work still holds, after a failure."""
    import gc

    gc.collect()
    _runtime.drain(_DRAIN_S, _runtime.root_filter(queue.sycl_device))


def is_shortage(error: BaseException) -> bool:
    """Whether an exception says that memory ran out: dpctl's, dpmem's, Python's, or the RuntimeError of dpnp's C++."""
    return _out_of_memory.is_refusal(error)
