"""`dpmem.plan_chunks`: the chunk in which a function can go through data that is larger than the device.

Memory says how large a chunk may be, time how large it need be: beyond some size no chunk is faster by the byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpmem import (
    _chunks,
    _combine,
    _devices,
    _fit,
    _form,
    _native,
    _pool,
    _runtime,
    _shortage_wait,
    _sources,
    _step,
)

#: Fewer chunks would leave nothing to overlap.
_LEAST_CHUNKS = 8
#: What a chunk takes beyond the function, in seconds, and the share of its time that this may be.
_OVERHEAD_S, _OVERHEAD_SHARE = 200e-6, 0.05
#: Bounds of the efficient size. Where the processor itself computes, a chunk and what is made of it should still be in
#: its cache, and each page of a buffer costs a fault when it is first touched.
_EFFICIENT_BYTES = (1 << 20, 1 << 30)
_NEAR_BYTES = 8 << 20
#: Small blocks wait for one marker of the pool's together, so a chunk's own can't always be those of the one before.
_WAITING_BYTES = 1 << 20
#: Without a recording a chunk is no larger than this.
_BLIND_BYTES = 64 << 20


@dataclass(frozen=True, repr=False)
class ChunkPlan:
    """How to cut data into chunks that fit, and why. Made by `plan_chunks`, taken by `map_chunks`.

    Attributes
    ----------
    rows : int
        Rows of a chunk; the last one may have fewer.
    chunks : int
        How many there are.
    row_bytes : int
        Bytes of a row of the source.
    bytes_per_row : int
        Device bytes at the peak for each row of a chunk: chunks in flight, temporaries, results.
    peak_bytes : int
        Device and shared memory that the job takes at most.
    largest_rows : int
        Rows of the largest chunk that would fit.
    free_bytes, budget_bytes : int or None
        Free memory when the plan was made, and the part of it that may be used.
    linear : bool
        Whether memory grew evenly with the rows.
    recorded : bool
        Whether it was measured at all.
    reasons : list of str
        Why the chunk has this size.
    """

    rows: int
    chunks: int
    total_rows: int
    row_bytes: int
    bytes_per_row: int
    fixed_bytes: int
    peak_bytes: int
    largest_rows: int
    in_flight: int
    axis: int
    budget: float
    device: str
    free_bytes: int | None
    free_source: str
    free_trust: str
    budget_bytes: int | None
    limit_bytes: int | None
    max_alloc_bytes: int | None
    linear: bool
    recorded: bool
    reasons: list[str]
    source: str
    function: str
    _form: _form.Form | None = field(default=None, repr=False)

    def as_json(self) -> dict[str, Any]:
        """What `dpmem plan --json` prints."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __repr__(self) -> str:
        return (
            f"<ChunkPlan: {self.chunks} chunks of {self.rows} rows on {self.device}, "
            f"at most {_native.human_size(self.peak_bytes)}>"
        )

    def __str__(self) -> str:
        size, number = _native.human_size, _native.human_count
        free = _devices.shown(self.free_bytes)
        lines = [
            f"{self.function}: {number(self.chunks)} chunks of {number(self.rows)} rows on {self.device}",
            f"  source  {self.source}",
            f"  chunk   {size(self.rows * self.row_bytes)} ({size(self.row_bytes)} a row), {self.in_flight} in flight",
            f"  peak    {size(self.peak_bytes)} of device memory, {size(self.bytes_per_row)} for each row of a chunk",
            f"  free    {free} [{self.free_trust}: {self.free_source}], {self.budget:.0%} of it to be used",
        ]
        return "\n".join([*lines, *(f"  - {reason}" for reason in self.reasons)])

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


def plan_chunks(
    fn: Callable[..., Any],
    source: Any,
    *,
    device: Any = None,
    budget: float = 0.6,
    in_flight: int = 2,
    axis: int = 0,
    reduce: Any = None,
) -> ChunkPlan:
    """Find the chunk in which `fn` can go through `source` on a device.

    `fn` is called on small parts of the data, two or three sizes, a few times each. What it allocates there is
    recorded, and how that grows with the rows, together with the memory that is free, says which chunk fits. Of those
    that fit the smallest is taken that is about as fast as any, so that reading and computing overlap, in at least
    eight chunks where there are as many rows. `print` the plan for its reasons.

    Parameters
    ----------
    fn
        Takes a dpnp array, or as many as `source` is a tuple of, and returns an array or a number.
    source
        As in `chunks`.
    device
        A filter string, a `dpctl.SyclDevice`, a dpnp device or a queue; None for the default device.
    budget
        Share of the free memory that may be used, above 0 and at most 1.
    in_flight
        Chunks that are on the device at a time.
    axis
        The axis of the source to cut along.
    reduce
        As in `map_chunks`, whose own temporaries are counted then.

    Raises
    ------
    MemoryError
        Not even one row fits; the text has the numbers.
    ValueError, TypeError
        `fn` can't go in chunks, or an argument makes no sense.
    RuntimeError, dpctl.SyclDeviceCreationError
        There is no SYCL device, or none of that name.
    """
    opened = _sources.open_source(source, axis)
    reduction = _combine.reduction(reduce, opened.axis)
    queue = queue_of(device)
    with _pool.borrowed() as pool:
        return make_plan(fn, opened, reduction, queue, pool, budget=budget, in_flight=in_flight)


def queue_of(device: Any) -> Any:
    """The queue that dpnp uses on a device."""
    queue = device if hasattr(type(device), "submit_barrier") else None
    return _chunks.chosen_queue(None if queue is not None else device, queue)


def make_plan(
    fn: Callable[..., Any],
    source: Any,
    reduction: _combine.Reduction | None,
    queue: Any,
    pool: _pool.borrowed,
    *,
    budget: float,
    in_flight: int,
    writes: bool = True,
) -> ChunkPlan:
    """As `plan_chunks`, for a source that is open, inside a borrowed pool."""
    in_flight = _checked_in_flight(fn, budget, in_flight)
    if len(source) == 0:
        raise ValueError(f"{source.describe()}: there are no rows to plan for")
    room = Room(queue, budget)
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    largest = max(int(part.row_nbytes) for part in source.parts)
    most = room.max_alloc_bytes
    if in_flight * source.row_nbytes * _fit.MARGIN > room.budget_bytes or (most is not None and largest > most):
        raise MemoryError(_refusal(name, source, room, in_flight * source.row_nbytes, in_flight, "its input alone"))
    trial = _Trial(fn, source, reduction, queue, pool, room, name, in_flight, writes)
    return trial.plan(budget)


def _checked_in_flight(fn: Any, budget: float, in_flight: Any) -> int:
    if not callable(fn):
        raise TypeError(f"expected a function of a chunk, got {fn!r}")
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget <= 1:
        raise ValueError(f"expected a budget above 0 and at most 1, got {budget!r}")
    number = _sources.whole_number("in_flight", in_flight)
    if number < 1:
        raise ValueError(f"expected a number of chunks in flight, at least 1, got {in_flight!r}")
    return number


class Room:
    """What a device has left for a job."""

    def __init__(self, queue: Any, budget: float) -> None:
        device = queue.sycl_device
        self.device = _runtime.root_filter(device)
        self.max_alloc_bytes = int(device.max_mem_alloc_size) or None
        reading = _devices.mem_get_info(self.device)
        self.free_bytes, self.source, self.trust = reading.free, reading.free_source, reading.free_trust
        self.reasons: list[str] = []
        usable = self.free_bytes
        if usable is None:
            usable = int(device.global_mem_size) - _devices._own_bytes(self.device)
            self.reasons.append(f"free memory is unknown ({self.source}): taken to be all but what this process holds")
        self.limit_bytes: int | None = _native.pool_limit_of(self.device)
        left = _shortage_wait.room_left(self.device)
        if self.limit_bytes is not None and left is not None and left < usable:
            self.reasons.append(f"dpmem's limit of {_native.human_size(self.limit_bytes)} leaves less than is free")
            usable = max(left, 0)
        self.budget_bytes = int(usable * budget)


class _Trial:
    """Tries a function out and decides."""

    def __init__(
        self,
        fn: Callable[..., Any],
        source: Any,
        reduction: _combine.Reduction | None,
        queue: Any,
        pool: _pool.borrowed,
        room: Room,
        name: str,
        in_flight: int,
        writes: bool,
    ) -> None:
        self._source, self._room, self._name, self._in_flight = source, room, name, in_flight
        self._near = bool(queue.sycl_device.is_cpu)
        self._own = reduction is not None and reduction.on_device
        self._reduces = reduction is not None and not self._own
        # Whether what a reduction of the user's makes of two results is larger than they are.
        self._grows = False
        self._form: _form.Form | None = None
        self._reasons = list(room.reasons)
        if pool.reason is not None:
            self._reasons.append(
                f"nothing can be recorded here ({pool.reason}): {_fit.UNKNOWN_FACTOR} times the input is assumed, "
                f"and chunks of {_native.human_size(_BLIND_BYTES)} at most"
            )

        self._step = step = _step.Step(fn, reduction, writes, source.axis)

        # Doesn't refer to the trial, which would then be garbage in a cycle.
        def tried(parts: tuple[Any, ...]) -> tuple[Any, Any]:
            result, reduced = step(parts)
            if reduction is not None and reduction.on_device:
                reduced = reduction.combine(reduced, reduced)
            return result, reduced

        self._prober = _fit.Prober(tried, source, queue, recorded=pool.reason is None)

    def plan(self, budget: float) -> ChunkPlan:
        """Try, fit, choose."""
        need = self._measure()
        total, row = len(self._source), self._source.row_nbytes
        largest = self._largest(need)
        if largest < 1:
            raise MemoryError(
                _refusal(self._name, self._source, self._room, self._peak(need, 1), self._in_flight, None)
            )
        rows = self._choose(need, largest)
        chunks = math.ceil(total / rows)
        rows = math.ceil(total / chunks)
        peak, free = self._peak(need, rows), self._room
        return ChunkPlan(
            rows=rows,
            chunks=math.ceil(total / rows),
            total_rows=total,
            row_bytes=row,
            bytes_per_row=math.ceil((peak - self._peak(need, 0)) / rows),
            fixed_bytes=self._peak(need, 0),
            peak_bytes=peak,
            largest_rows=largest,
            in_flight=self._in_flight,
            axis=self._source.axis,
            budget=budget,
            device=free.device,
            free_bytes=free.free_bytes,
            free_source=free.source,
            free_trust=free.trust,
            budget_bytes=free.budget_bytes,
            limit_bytes=free.limit_bytes,
            max_alloc_bytes=free.max_alloc_bytes,
            linear=need.is_linear,
            recorded=need.is_known,
            reasons=self._reasons,
            source=self._source.describe(),
            function=self._name,
            _form=self._form,
        )

    def _measure(self) -> _fit.Need:
        small, large = self._prober.sizes()
        while True:
            try:
                return self._measured(small, large)
            except Exception as error:
                if not _fit.is_shortage(error):
                    raise
                shortage = str(error).partition("\n")[0]
            # Out of the handler, so that nothing holds the frames of what failed.
            self._prober.give_up()
            if large <= 2:
                text = _refusal(self._name, self._source, self._room, None, self._in_flight, None)
                raise MemoryError(f"{text} ({shortage})")
            small = max(1, small // 8)
            large = max(small + 1, large // 8)

    def _measured(self, small: int, large: int) -> _fit.Need:
        self._form = self._step.form = None
        first, one = self._tried(small)
        second, other = self._tried(large)
        self._form = _form.form_of(one[0], small, other[0], large, self._source.axis)
        self._step.form = self._form
        self._grows = self._own and _fit.size_of(other[1]) > 1.5 * _fit.size_of(other[0])
        if self._grows:
            said = "reduce= makes something larger of two results: that of all has to fit, and its halves beside it"
            self._reasons += [] if said in self._reasons else [said]
        one = other = None
        if self._reduces and self._form.axis is not None:
            # Only now is it known along which axis to reduce, and that takes memory as well.
            first, second = self._tried(small)[0], self._tried(large)[0]
        probes = [first, second]
        need = self._fitted(probes)
        if not need.is_linear:
            said = "memory does not grow evenly with the rows: tried on a larger part, too"
            self._reasons += [] if said in self._reasons else [said]
            probes.append(self._tried(2 * large)[0])
            need = self._fitted(probes)
        return need

    def _tried(self, rows: int) -> tuple[_fit.Probe, Any]:
        try:
            return self._prober.call(rows)
        except Exception as error:
            if not _fit.is_shortage(error):
                add_note(error, f"while the function was tried on {rows} of {len(self._source)} rows")
            raise

    def _fitted(self, probes: list[_fit.Probe]) -> _fit.Need:
        unbounded = self._form is not None and self._form.kind == "varying"
        need = _fit.Need(probes, unbounded=unbounded)
        if not _fit.is_looping(probes):
            return need
        wanted = min(self._efficient(need)[0], max(1, len(self._source) // _LEAST_CHUNKS))
        if self._largest(need) >= wanted:
            return need
        said = "it allocates far more than it holds at a time, so four times the most that it held counts"
        self._reasons += [] if said in self._reasons else [said]
        return _fit.Need(probes, looping=True, unbounded=unbounded)

    def _peak(self, need: _fit.Need, rows: int) -> int:
        """Device bytes at most with chunks of so many rows."""
        buffers = math.ceil(self._in_flight * rows * self._source.row_nbytes * _fit.MARGIN)
        # The partial results of a function of the user's stay on the device: one for each power of two.
        partial = 0
        if self._own and rows:
            chunks = len(self._source) / rows
            depth = 2 * math.ceil(chunks) if self._grows else math.ceil(math.log2(max(2, chunks))) + 2
            partial = math.ceil(depth * need.result_bytes(rows) * _fit.MARGIN)
        return int(buffers + need.bytes_for(rows) + partial + _WAITING_BYTES)

    def _largest(self, need: _fit.Need) -> int:
        most = self._room.max_alloc_bytes

        def fits(rows: int) -> bool:
            if most is not None and max(self._largest_input(rows), need.largest_block(rows)) > most:
                return False
            return bool(self._peak(need, rows) <= self._room.budget_bytes)

        bound = len(self._source)
        if need.most_rows is not None:
            bound = min(bound, need.most_rows)
        if not need.is_known:
            bound = min(bound, max(1, _BLIND_BYTES // max(self._source.row_nbytes, 1)))
        low, high = 0, bound
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low

    def _largest_input(self, rows: int) -> int:
        return max(int(part.row_nbytes) for part in self._source.parts) * rows

    def _efficient(self, need: _fit.Need) -> tuple[int, float]:
        """Rows of a chunk that is about as fast as any, and its bytes: a power of two, so that noise changes little."""
        fixed, each = _fit.seconds_per_byte(need.probes)
        wanted = (fixed + _OVERHEAD_S) / _OVERHEAD_SHARE / max(each, 1e-15)
        least, most = _EFFICIENT_BYTES
        most = _NEAR_BYTES if self._near else most
        size = float(2 ** round(math.log2(min(max(wanted, least), most))))
        return max(1, round(size / max(self._source.row_nbytes, 1))), size

    def _choose(self, need: _fit.Need, largest: int) -> int:
        total, size = len(self._source), _native.human_size
        eighth = max(1, total // _LEAST_CHUNKS)
        efficient, bytes_ = self._efficient(need)
        rows = min(largest, eighth, efficient)
        row = self._source.row_nbytes
        self._reasons.append(f"chunks of up to {_native.human_count(largest)} rows ({size(largest * row)}) would fit")
        if rows == largest < min(eighth, efficient):
            self._reasons.append("the largest that fits is taken")
        elif rows == efficient:
            near = ", as this processor's cache holds no more" if self._near and bytes_ >= _NEAR_BYTES else ""
            self._reasons.append(f"beyond {size(int(bytes_))} a chunk is no faster{near}")
        else:
            self._reasons.append(f"so that there are {min(total, _LEAST_CHUNKS)} chunks to overlap")
        return rows


def add_note(error: BaseException, text: str) -> None:
    """Add a line to an exception, from Python 3.11 on."""
    add = getattr(error, "add_note", None)
    if add is not None:
        add(text)


def _refusal(name: str, source: Any, room: Room, peak: int | None, in_flight: int, what: str | None) -> str:
    size = _native.human_size
    part = f"{name} with one row" if what is None else what
    takes = "more than there is" if peak is None else size(peak)
    limit = f", dpmem's limit is {size(room.limit_bytes)}" if room.limit_bytes is not None else ""
    largest = f", the largest allocation {size(room.max_alloc_bytes)}" if room.max_alloc_bytes is not None else ""
    return (
        f"not even one row of {source.describe()} fits on {room.device}: a row has {size(source.row_nbytes)}, {part} "
        f"with {in_flight} in flight takes {takes}, {size(room.budget_bytes)} may be used "
        f"(free {_devices.shown(room.free_bytes)}{limit}{largest}); what helps: in_flight=1, a larger budget=, "
        f"another axis=, or less in {name}"
    )
