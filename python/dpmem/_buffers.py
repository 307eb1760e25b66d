"""Device buffers that chunks take turns in: when one may be filled again, and what becomes of arrays after their turn.

A buffer may be filled again when two things are known: all work that was queued while the program had it is done (its
*fence*), and no Python object refers to its memory any more but the buffer itself. The second is a count of
references: views, slices, `usm_ndarray`s and memory objects made of the array that was handed out all refer to the one
memory object. A buffer that somebody still refers to is never filled; it is passed over, and in the end left to them.
Queued work holds no such reference, so a buffer that was held after its turn gets a new fence once it is let go.

The array that was handed out is taken out of use when its turn ends. Used by one thread at a time.
"""

from __future__ import annotations

import functools
import gc
import math
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmem import _native, _runtime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpmem._sources import Source


class Buffer:
    """Memory on the device for one chunk, a block for each source that is read."""

    def __init__(self, parts: Sequence[Source], rows: int, queue: Any) -> None:
        import dpctl.memory

        self._shapes = [part.chunk_shape(rows) for part in parts]
        sizes = [max(1, math.prod(shape) * part.dtype.itemsize) for shape, part in self._of(parts)]
        self.memories = [dpctl.memory.MemoryUSMDevice(size, queue=queue) for size in sizes]
        self.nbytes = sum(sizes)
        self.fence = Fence([])
        #: Whether anybody still referred to it when its turn ended, and may have queued more work behind its fence.
        self.has_escaped = False
        self._own_references = self._references()

    def _of(self, parts: Sequence[Source]) -> Any:
        return zip(self._shapes, parts, strict=True)

    def _references(self) -> list[int]:
        return [sys.getrefcount(memory) for memory in self.memories]

    def is_held(self) -> bool:
        """Whether anybody else refers to its memory."""
        return self._references() != self._own_references

    def held_memory(self) -> Any:
        """A memory object that somebody else refers to, as it is held."""
        pairs = zip(self._references(), self._own_references, strict=True)
        return self.memories[next((at for at, (now, own) in enumerate(pairs) if now != own), 0)]


class Fence:
    """Events of everything that was queued at one moment and might use a buffer."""

    def __init__(self, events: list[Any]) -> None:
        self._events = events

    @classmethod
    def behind(cls, queue: Any) -> Fence:
        """Behind the work of a queue, and of every other that dpctl knows in its context.

        A barrier doesn't stand behind host tasks, as oneMKL uses them on CPUs; dpctl's order manager has their events.
        """
        context = queue.sycl_context
        events = [queue.submit_barrier()]
        for other, manager in _runtime.managers():
            if other.sycl_context == context:
                events.extend(manager.submitted_events)
                if other != queue:
                    events.append(other.submit_barrier())
        return cls(events)

    def pending(self) -> list[Any]:
        """Those that are not complete."""
        if self._events:
            self._events = _runtime.unfinished(self._events)
        return self._events

    def wait(self) -> None:
        """Until all of it is complete.

        Asked from time to time: two threads that wait for one queue can block each other for good in the CPU runtime,
        and where there is work, dpctl's host tasks wait as well.
        """
        begun = time.perf_counter()
        while self.pending():
            # Never late by more than an eighth of the wait; what takes no time is not slept over.
            waited = time.perf_counter() - begun
            time.sleep(0.0 if waited < 1e-4 else min(waited / 8, 5e-4))


class Rack:
    """The buffers of one iteration: as many as may be in flight, and one more where the program is slow to let go."""

    def __init__(self, parts: Sequence[Source], rows: int, queue: Any, in_flight: int) -> None:
        self._parts, self._rows, self._queue, self._in_flight = parts, rows, queue, in_flight
        #: Every buffer that is the rack's, and those of them that are not in use, the one used longest ago first.
        self._owned: list[Buffer] = []
        self._resting: list[Buffer] = []
        #: How many buffers were left to who held them.
        self._left_count = 0

    @property
    def parts(self) -> Sequence[Source]:
        """The sources that each buffer has a block for."""
        return self._parts

    def prepare(self) -> None:
        """Have a first buffer, before anything is read: if there is no room, it is said at once."""
        if not self._owned:
            self._resting.append(self._another())

    def put_back(self, buffer: Buffer) -> None:
        """End a buffer's turn."""
        # In this order: whoever lets go in between has queued its work before the fence.
        buffer.has_escaped = buffer.is_held()
        buffer.fence = Fence.behind(self._queue)
        self._resting.append(buffer)

    def take(self, *, patient: bool, behind: bool = False) -> Buffer | None:
        """A buffer that may be filled, or None if that would take waiting and nobody is `patient`.

        With `behind` its fence may still be pending: whoever fills it does so behind the fence.
        """
        buffer = self._at_hand(behind)
        # A variable of the program's that holds a view of the last chunk often takes one of the next: then one more
        # buffer is all it takes.
        allowed = self._in_flight + self._all_at_rest_are_held()
        if buffer is None and len(self._owned) < allowed:
            buffer = self._another()
        if buffer is None and patient:
            buffer = self._waited_for()
        return buffer

    def _at_hand(self, behind: bool) -> Buffer | None:
        for buffer in self._resting:
            if self._is_free(buffer) and (behind or not buffer.fence.pending()):
                self._resting.remove(buffer)
                return buffer
        return None

    def _is_free(self, buffer: Buffer) -> bool:
        """Whether nobody refers to it; its fence is behind all that was queued with it then."""
        if buffer.is_held():
            return False
        if buffer.has_escaped:
            buffer.has_escaped = False
            buffer.fence = Fence.behind(self._queue)
        return True

    def _all_at_rest_are_held(self) -> bool:
        return bool(self._resting) and all(not b.fence.pending() and b.is_held() for b in self._resting)

    def _another(self) -> Buffer:
        buffer = Buffer(self._parts, self._rows, self._queue)
        self._owned.append(buffer)
        return buffer

    def _waited_for(self) -> Buffer:
        found = self._free_in_time()
        if found is None and len(self._owned) == self._in_flight:
            return self._another()
        # What is held by garbage in cycles only is free once that is collected. That takes long, and where it did not
        # help it helps less and less.
        if found is None and self._left_count & (self._left_count - 1) <= 0:
            gc.collect()
            found = self._free_in_time()
        if found is None:
            self._leave(self._resting[0])
            found = self._another()
        return found

    def _free_in_time(self) -> Buffer | None:
        """A buffer that nobody refers to, once its fence has passed."""
        for buffer in list(self._resting):
            buffer.fence.wait()
            if self._is_free(buffer):
                buffer.fence.wait()
                self._resting.remove(buffer)
                return buffer
        return None

    def _leave(self, buffer: Buffer) -> None:
        """Let those who hold a buffer's memory have it."""
        self._resting.remove(buffer)
        self._owned.remove(buffer)
        self._left_count += 1
        if self._left_count > 1:
            return
        held, size = buffer.held_memory(), buffer.nbytes
        # No reference of ours may be told as one of the program's.
        del buffer
        warnings.warn(
            f"an array that shares memory with an earlier chunk is still there{_by_whom(held)}; it keeps its values, "
            f"and each chunk that is held like this takes {_native.human_size(size)} more: keep copies instead",
            RuntimeWarning,
            stacklevel=_depth_of_caller(),
        )

    def settle(self) -> None:
        """Wait for whatever uses a buffer whose turn is over."""
        for buffer in self._resting:
            buffer.fence.wait()
        self._resting.clear()
        self._owned.clear()


def _depth_of_caller() -> int:
    """How far up the stack the program is, counted from this function's caller."""
    package, depth, frame = __name__.rpartition(".")[0], 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").rpartition(".")[0] == package:
        frame, depth = frame.f_back, depth + 1
    return depth


def _by_whom(memory: Any) -> str:
    from dpmem import _live

    found = _live.holders(memory)
    return f", held by {found[0].path}" if found else ""


def end_turn(array: Any, label: str) -> None:
    """Take an array out of use: whatever is done with it from now on raises a RuntimeError that says why.

    It lets its memory go. Its class becomes a subclass of `dpnp.ndarray`; nothing of dpnp's is changed.
    """
    # The one attribute that such an array has, in every version, takes the text in place of the memory.
    array._array_obj = label
    array.__class__ = _ended_class()


@functools.cache
def _ended_class() -> type:
    import dpnp

    class EndedChunk(dpnp.ndarray):  # type: ignore[misc]
        """A chunk whose turn is over."""

        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            if name == "__class__":
                return EndedChunk
            label = object.__getattribute__(self, "_array_obj")
            raise RuntimeError(
                f"{label} is over: the next chunk may lie in its memory by now. Compute what you need of a chunk "
                "before the next one is asked for, or keep a copy of it"
            )

        def __repr__(self) -> str:
            return f"<{object.__getattribute__(self, '_array_obj')}: over>"

    return EndedChunk


class _Window:
    """Memory that the host can reach, for NumPy to look at."""

    def __init__(self, memory: Any, shape: tuple[int, ...], dtype: Any) -> None:
        self._memory = memory
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (int(memory._pointer), False),
        }


def host_view(memory: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A NumPy array on memory that the host can reach."""
    return np.asarray(_Window(memory, shape, dtype))


def host_reaches_memory_of(queue: Any) -> bool:
    """Whether the host can write a device's memory as it writes its own, so that no copy is needed.

    Asked of CPUs only, and believed only after a look: the system must find the memory in this process, writable, and
    the device must read there what the host has written.
    """
    device = queue.sycl_device
    return device.is_cpu and _host_reaches(device)


@functools.cache
def _host_reaches(device: Any) -> bool:
    import dpctl
    import dpctl.memory

    # Of its own: the program's may be many, and what is remembered should keep none of them.
    queue, size = dpctl.SyclQueue(device), 1 << 16
    memory, answer = dpctl.memory.MemoryUSMDevice(size, queue=queue), dpctl.memory.MemoryUSMHost(size, queue=queue)
    if not _native.stream_reachable(int(memory._pointer), size):
        return False
    pattern = np.arange(size // 4, dtype=np.uint32) * np.uint32(2654435761)
    host_view(memory, pattern.shape, pattern.dtype)[...] = pattern
    Fence([queue.memcpy_async(answer, memory, size)]).wait()
    return bool((np.frombuffer(answer, pattern.dtype) == pattern).all())
