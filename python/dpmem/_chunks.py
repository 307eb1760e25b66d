"""`chunks`: data larger than the device, one chunk after the other, in device buffers that are used again and again."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from dpmem import _buffers, _feed
from dpmem._sources import Source, open_source, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

#: How large a chunk is if nobody says. On a device that works in the host's memory a chunk should still be in the
#: processor's cache when it is computed on; elsewhere it should keep a bus and many units busy.
_NEAR_BYTES = 8 << 20
_FAR_BYTES = 64 << 20
#: The most of the free memory that all chunks in flight take together, if nobody says.
_SHARE = 0.6


class Chunks:
    """An iterator of `(index, array)`; see `chunks`."""

    def __init__(
        self, source: Source, rows: int | None, queue: Any, in_flight: int, start: int, stop: int | None
    ) -> None:
        length, in_flight, start = len(source), whole_number("in_flight", in_flight), whole_number("start", start)
        if in_flight < 1:
            raise ValueError(f"at least one chunk must be in flight, got in_flight={in_flight}")
        if not 0 <= start <= length:
            raise ValueError(f"start must lie between 0 and {length}, got {start}")
        stop = length if stop is None else whole_number("stop", stop)
        if not start <= stop <= length:
            raise ValueError(f"stop must lie between {start} and {length}, got {stop}")
        rows = None if rows is None else whole_number("rows", rows)
        if rows is not None and rows < 1:
            raise ValueError(f"a chunk has at least one row, got rows={rows}")
        for part in source.parts:
            _check_device(part, queue.sycl_device)
        #: What is cut, and the rows of a chunk (the last may have fewer).
        self.source = source
        self.rows = min(rows or default_rows(source, queue, in_flight), max(stop - start, 1))
        self._count = -(-(stop - start) // self.rows)
        self._queue, self._process = queue, os.getpid()
        self._advancing = threading.Lock()
        self._turn: tuple[_feed.Span, _buffers.Buffer, list[Any]] | None = None
        self._failure: str | None = None
        rack = _buffers.Rack(source.parts, self.rows, queue, in_flight)
        spans = _spans(start, stop, self.rows)
        self._feed: _feed.DirectFeed | _feed.StagedFeed
        if _buffers.host_reaches_memory_of(queue):
            self._feed = _feed.DirectFeed(rack, spans)
        else:
            self._feed = _feed.StagedFeed(rack, spans, self.rows, queue, in_flight)
        # Not `__del__`: that is not called when the interpreter ends while somebody still has the iterator.
        self._finish = weakref.finalize(self, self._feed.close)

    def __len__(self) -> int:
        """How many chunks there are in all."""
        return self._count

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self

    def __next__(self) -> tuple[Any, Any]:
        if not self._advancing.acquire(blocking=False):
            raise RuntimeError("these chunks are being asked for the next one already: use them in one thread")
        try:
            return self._advance()
        finally:
            self._advancing.release()

    def _advance(self) -> tuple[Any, Any]:
        if self._failure is not None:
            raise RuntimeError(f"these chunks have ended with {self._failure}")
        if not self._finish.alive:
            raise StopIteration
        try:
            if self._process != os.getpid():
                # Queues didn't come along either: nothing here may touch one.
                raise RuntimeError("these chunks stayed in the process that this one was forked from")
            handed = self._next_turn()
        except BaseException as failure:
            # Whatever it was, a chunk may be lost: this must not look like the end.
            self._failure = f"{type(failure).__name__}: {failure}"
            self.close()
            if isinstance(failure, StopIteration):
                raise RuntimeError(f"{self.source.name} raised StopIteration") from failure
            raise
        if handed is None:
            self.close()
            raise StopIteration
        return handed

    def _next_turn(self) -> tuple[Any, Any] | None:
        """End the turn of one chunk and begin the next one's; None after the last."""
        self._end_turn()
        self._feed.advance()
        taken = self._feed.take()
        self._feed.advance()
        if taken is None:
            return None
        span, buffer = taken
        arrays = self._arrays(span, buffer)
        self._turn = (span, buffer, arrays)
        handed = arrays[0] if self.source.parts == (self.source,) else tuple(arrays)
        return self.source.index(*span), handed

    def _arrays(self, span: _feed.Span, buffer: _buffers.Buffer) -> list[Any]:
        import dpnp

        shapes = [(part.chunk_shape(span[1] - span[0]), part.dtype) for part in self.source.parts]
        return [
            dpnp.ndarray(shape, dtype=dtype, buffer=memory, sycl_queue=self._queue)
            for (shape, dtype), memory in zip(shapes, buffer.memories, strict=True)
        ]

    def _end_turn(self) -> None:
        if self._turn is None:
            return
        (start, stop), buffer, arrays = self._turn
        self._turn = None
        while arrays:
            _buffers.end_turn(arrays.pop(), f"the turn of the chunk with rows {start} to {stop}")
        self._feed.rack.put_back(buffer)

    def close(self) -> None:
        """End the reading thread and let the buffers go; the chunk whose turn it is stays whoever's has it.

        Happens by itself after the last chunk, after an error, and when nobody has the iterator any more.
        """
        self._turn = None
        self._finish()

    def __enter__(self) -> Chunks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<chunks of {self.rows} rows of {self.source.describe()}>"


def chunks(
    source: Any,
    rows: int | None = None,
    *,
    device: Any = None,
    queue: Any = None,
    in_flight: int = 2,
    axis: int = 0,
    start: int = 0,
    stop: int | None = None,
) -> Chunks:
    """Iterate over data of any size in chunks that fit on a device: yields `(index, array)`.

    The next chunks are read while you compute on this one, by a thread that needs no GIL, into device buffers that are
    used again. So an array is valid **until the next one is asked for**; after that, using it raises a RuntimeError.
    Views of it that are still there then keep their values: their buffer is left to them and another is allocated.

    Parameters
    ----------
    source
        A NumPy array or memmap; the path of a `.npy` file, or a pattern such as `"part-*.npy"`; a list of these, joined
        along `axis` (chunks may reach from one into the next); anything else with `shape`, `dtype` and slicing, such
        as arrays of zarr and h5py; or a tuple of sources that are equally long, for a tuple of arrays in each turn.
    rows
        Steps along `axis` in a chunk; the last chunk may have fewer. None: a size that fits and is fast.
    device, queue
        Where: a filter string, a `dpctl.SyclDevice` or a dpnp device; or a `dpctl.SyclQueue`. None for the default.
    in_flight
        How many chunks are on the device at once: the one in your hands, and those that are being filled.
    axis
        The axis to cut along.
    start, stop
        The rows to begin with and to end before; None for the end.

    Returns
    -------
    Chunks
        The iterator; `len()` is the number of chunks, `close()` ends it early, and so does leaving a `with` block.
        `index` is a slice for axis 0 and a tuple of slices else, so that `out[index] = ...` is always right; `array` is
        a `dpnp.ndarray` in C order, with the source's values and dtype (in native byte order).

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        As `source` can't be opened: there is no such file, it is truncated, sources don't fit together, or no device
        computes with such items.
    RuntimeError
        There is no SYCL device.
    dpctl.SyclDeviceCreationError
        There is no device of that name.
    OSError
        While iterating: a file is gone, was replaced or has shrunk; the text names it and the offset.
    dpctl.memory.USMAllocationError
        A chunk doesn't fit on the device.
    MemoryError
        While iterating: the host has no memory to put a chunk in another order.
    """
    if queue is not None and device is not None:
        raise TypeError("give a device or a queue, not both")
    opened = open_source(source, axis)
    return Chunks(opened, rows, chosen_queue(device, queue), in_flight, start, stop)


def chosen_queue(device: Any, queue: Any) -> Any:
    """The queue that dpnp uses on a device, or the one that was given."""
    import dpctl
    import dpnp

    try:
        return dpnp.get_normalized_queue_device(device=device, sycl_queue=queue)
    except dpctl.SyclDeviceCreationError as error:
        if device is None and queue is None:
            raise RuntimeError("there is no SYCL device; `dpmem doctor` says why, and what to type") from error
        if isinstance(device, str):
            raise type(error)(f"there is no device `{device}`; `dpmem devices` lists those that there are") from error
        raise


def default_rows(source: Source, queue: Any, in_flight: int) -> int:
    """Rows for chunks of a size that is fast, or of what fits if that is less."""
    from dpmem import _devices

    device = queue.sycl_device
    comfortable = _NEAR_BYTES if device.is_cpu else _FAR_BYTES
    row_nbytes = max(source.row_nbytes, 1)
    largest = max(part.row_nbytes for part in source.parts)
    room = _devices.mem_get_info(queue)
    free = room.free if room.free is not None else room.free_at_most_bytes
    fits = comfortable if free is None else int(free * _SHARE) // in_flight
    rows = min(comfortable, fits) // row_nbytes
    if largest:
        rows = min(rows, device.max_mem_alloc_size // largest)
    return max(rows, 1)


def _spans(start: int, stop: int, rows: int) -> Iterator[_feed.Span]:
    for begin in range(start, stop, rows):
        yield begin, min(begin + rows, stop)


def _check_device(part: Source, device: Any) -> None:
    """Refuse what this device can't compute with."""
    if part.dtype.kind in "fc" and part.dtype.itemsize // (2 if part.dtype.kind == "c" else 1) == 8:
        able = device.has_aspect_fp64
    elif part.dtype == "float16":
        able = device.has_aspect_fp16
    else:
        return
    if not able:
        raise TypeError(f"{part.name} holds {part.dtype}, which {device.name} can't compute with: convert it first")
