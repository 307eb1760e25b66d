"""Filling device buffers ahead of the program, chunk after chunk.

`DirectFeed` has the reader's thread read into the buffer itself, where the host can reach device memory. `StagedFeed`
has it read into host memory that the device can copy from at full speed (USM-host), and copies from there on a queue of
its own, behind the fence of the buffer's last turn; so reading the chunk after next, copying the next, and computing
on this one go on at once.

A feed outlives the iterator by as long as its own work lasts: `close` waits for reads and copies, and only then lets
memory go. What only slicing can tell (`Source.blocks` is None) is read on the calling thread, when it is needed.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any

from dpmem import _native
from dpmem._buffers import Buffer, Fence, Rack, host_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dpmem._sources import Source

#: First and last row.
Span = tuple[int, int]


class Fill:
    """Reads that are under way, of one chunk into memory that the host can reach."""

    def __init__(self, span: Span, memories: list[Any], reader: Any, parts: Sequence[Source]) -> None:
        self.span = span
        self._reader = reader
        self._tickets: list[int] = []
        self._sliced: list[tuple[Source, Any]] = []
        start, stop = span
        for part, memory in zip(parts, memories, strict=True):
            blocks = part.blocks(start, stop)
            if blocks is None:
                self._sliced.append((part, memory))
            elif blocks:
                ticket = reader.submit(int(memory._pointer), memory.nbytes, memory, blocks)
                self._tickets.append(ticket)

    def has_ended(self) -> bool:
        """Whether `wait` would return at once."""
        return not self._sliced and all(map(self._reader.has_ended, self._tickets))

    def wait(self) -> None:
        """Until it is all there; raises what went wrong."""
        start, stop = self.span
        while self._sliced:
            part, memory = self._sliced.pop()
            part.read_into(start, stop, host_view(memory, part.chunk_shape(stop - start), part.dtype))
        while self._tickets:
            self._reader.wait(self._tickets.pop(0))


class DirectFeed:
    """Reads into the buffers themselves."""

    def __init__(self, rack: Rack, spans: Iterator[Span]) -> None:
        self.rack = rack
        self._spans = spans
        self._reader = _native.StreamReader()
        self._process = os.getpid()
        self._next = next(spans, None)
        self._filling: deque[tuple[Buffer, Fill]] = deque()

    def advance(self) -> None:
        """Start what can be started without waiting."""
        while self._next is not None and self._start(patient=False):
            pass

    def take(self) -> tuple[Span, Buffer] | None:
        """The next chunk, waited for; None after the last."""
        if not self._filling and self._next is not None:
            self._start(patient=True)
        if not self._filling:
            return None
        buffer, fill = self._filling.popleft()
        fill.wait()
        return fill.span, buffer

    def _start(self, *, patient: bool) -> bool:
        buffer = self.rack.take(patient=patient)
        if buffer is None or self._next is None:
            return False
        self._filling.append((buffer, Fill(self._next, buffer.memories, self._reader, self.rack.parts)))
        self._next = next(self._spans, None)
        return True

    def close(self) -> None:
        """End the thread and let the memory go, as soon as nothing works on it."""
        if os.getpid() == self._process:
            self._reader.close()
            self._filling.clear()
            self.rack.settle()


class StagedFeed:
    """Reads into host memory and copies from there."""

    def __init__(self, rack: Rack, spans: Iterator[Span], rows: int, queue: Any, in_flight: int) -> None:
        import dpctl

        self.rack = rack
        self._spans = spans
        self._rows, self._queue, self._in_flight = rows, queue, in_flight
        properties = ["in_order", "enable_profiling"] if queue.has_enable_profiling else ["in_order"]
        self._copies = dpctl.SyclQueue(queue.sycl_context, queue.sycl_device, property=properties)
        self._reader = _native.StreamReader()
        self._process = os.getpid()
        self._next = next(spans, None)
        #: Host memory that is not in use; chunks that are read; chunks that are copied, with their events.
        self._stages: list[list[Any]] = []
        self._stage_count = 0
        self._filling: deque[tuple[list[Any], Fill]] = deque()
        self.copying: deque[tuple[Span, Buffer, list[Any]]] = deque()
        #: Host memory in use until these events are complete.
        self._draining: list[tuple[list[Any], Fence]] = []

    def advance(self) -> None:
        """Start what can be started without waiting."""
        for stage, fence in list(self._draining):
            if not fence.pending():
                self._draining.remove((stage, fence))
                self._stages.append(stage)
        self._read_ahead()
        while self._filling and self._filling[0][1].has_ended() and len(self.copying) < self._in_flight:
            if not self._copy(patient=False):
                break
            self._read_ahead()

    def take(self) -> tuple[Span, Buffer] | None:
        """The next chunk, waited for; None after the last."""
        if not self.copying:
            if not self._filling:
                self._drain_one()
                self._read_ahead()
            if not self._filling:
                return None
            self._copy(patient=True)
        span, buffer, events = self.copying.popleft()
        Fence(list(events)).wait()
        return span, buffer

    def _read_ahead(self) -> None:
        self.rack.prepare()
        while self._next is not None:
            stage = self._stage()
            if stage is None:
                return
            self._filling.append((stage, Fill(self._next, stage, self._reader, self.rack.parts)))
            self._next = next(self._spans, None)

    def _stage(self) -> list[Any] | None:
        if self._stages:
            return self._stages.pop()
        if self._stage_count >= max(2, self._in_flight):
            return None
        import dpctl.memory

        self._stage_count += 1
        sizes = [max(1, part.row_nbytes * self._rows) for part in self.rack.parts]
        return [dpctl.memory.MemoryUSMHost(size, queue=self._queue) for size in sizes]

    def _drain_one(self) -> None:
        if self._draining and not self._stages:
            stage, fence = self._draining.pop(0)
            fence.wait()
            self._stages.append(stage)

    def _copy(self, *, patient: bool) -> bool:
        """Have the oldest chunk that is read copied into a buffer; False if there is none at hand."""
        if patient:
            # Before a buffer is taken: what is raised in here must leave nothing half done.
            self._filling[0][1].wait()
        buffer = self.rack.take(patient=patient, behind=True)
        if buffer is None:
            return False
        stage, fill = self._filling.popleft()
        fill.wait()
        start, stop = fill.span
        before, events = buffer.fence.pending(), []
        for part, host, device in zip(self.rack.parts, stage, buffer.memories, strict=True):
            size = part.row_nbytes * (stop - start)
            if size:
                events.append(self._copies.memcpy_async(device, host, size, before))
        self._draining.append((stage, Fence(list(events))))
        self.copying.append((fill.span, buffer, events))
        return True

    def close(self) -> None:
        """End the thread and let the memory go, as soon as nothing works on it."""
        if os.getpid() == self._process:
            self._reader.close()
            # Copies are done in order, so this stands behind each, also behind one whose event was lost to Ctrl-C.
            Fence([self._copies.submit_barrier()]).wait()
            self._draining.clear()
            self._filling.clear()
            self.copying.clear()
            self.rack.settle()
