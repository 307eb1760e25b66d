"""The caching pool and limits: `enable_pool`, `disable_pool`, `empty_cache`, `set_memory_limit` and its kin.

A limit counts what is *reserved*: device and shared memory that the process has taken from the runtime, what the pool
keeps included. Host memory takes no room on a device and is not limited.
"""

from __future__ import annotations

import numbers
import operator
from typing import TYPE_CHECKING, Any, ClassVar

from dpmem import _accounting, _native, _out_of_memory, _runtime, _tracking

if TYPE_CHECKING:
    from collections.abc import Callable


def enable_pool(limit: int | str | None = None) -> None:
    """Serve USM from a caching pool from now on.

    Freed blocks are kept and handed out again once the work that was queued when they were freed is done; a request
    costs a fraction of a microsecond then, where the runtime may take a system call and page faults. Recording is
    switched on if it is off, as limits and out-of-memory errors need it.

    Parameters
    ----------
    limit
        The limit of each device that has none of its own (`set_memory_limit`): bytes, or a text such as `"4GiB"` or
        `"50%"`. None: limits stay as they are.

    Raises
    ------
    ValueError, TypeError
        `limit` is no size.
    RuntimeError
        The runtime in this process can't be observed, or it can't be seen there when freed memory may be reused; or
        `limit` is a share of the capacity of a device that doesn't tell it.
    """
    text = None if limit is None else _text(limit)
    _begin()
    _native.pool_configure(True, text)
    if _native.pool_status()[2]:
        disable_pool()
        raise RuntimeError("this runtime doesn't tell when freed memory may be reused, so nothing can be cached")
    if text is not None and (unlimited := _without_limit()):
        disable_pool()
        raise RuntimeError(f"the capacity of {unlimited} is unknown: give the limit in bytes")
    with _tracking._lock:
        # What a job that is under way has switched on is the user's from now on.
        borrowed._began_recording = borrowed._began_caching = False


def _without_limit() -> str | None:
    """The devices in use that the limit for all does not hold for, in words."""
    _runtime.name_devices()
    for device in _runtime.devices() if _native.hook_runtime_is_up() else ():
        _native.pool_limit_of(_runtime.root_filter(device))
    return " and ".join(f"`{name}`" if name else "a device" for name in _native.pool_unlimited()) or None


def disable_pool() -> None:
    """Switch the pool and all limits off and give everything back that is cached."""
    _native.pool_configure(False, None)
    if not _tracking.is_tracking() and _native.hook_status()["phase"] == "installed":
        _native.hook_remove()


def empty_cache() -> int:
    """Give everything back that the pool keeps for reuse. How many bytes went."""
    return _native.pool_empty()


def set_memory_limit(limit: int | str | None, device: Any = None) -> int | None:
    """Refuse allocations that would take what this process has reserved on a device beyond a limit.

    Before one fails, cached blocks are given back, queued work is waited for, Python's cyclic collector runs, and the
    callbacks of `on_out_of_memory` are called. A limit below what is in use makes the next allocation fail and hurts
    nothing else.

    Parameters
    ----------
    limit
        Bytes, or a text such as `"4GiB"` or `"50%"` of the capacity; None for none.
    device
        As in `memory_allocated`.

    Returns
    -------
    int or None
        The limit before.

    Raises
    ------
    ValueError, TypeError
        `limit` is no size, or `device` names no device.
    RuntimeError
        The runtime in this process can't be observed, there is no device, or nothing is known of its capacity.
    """
    size, share = (None, None) if limit is None else _native.size_parse(_text(limit))
    return _set_limit(size, share, device)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit this process to a fraction of a device's capacity, above 0 and at most 1. As `set_memory_limit`.

    Raises
    ------
    ValueError
        `fraction` is out of range, or `device` names no device.
    RuntimeError
        As `set_memory_limit`.
    """
    if isinstance(fraction, bool) or not isinstance(fraction, numbers.Real) or not 0 < fraction <= 1:
        raise ValueError(f"expected a fraction above 0 and at most 1, got {fraction!r}")
    _set_limit(None, float(fraction), device)


def on_out_of_memory(callback: Callable[[Any], object]) -> Callable[[Any], object]:
    """Have `callback` called before an allocation fails for lack of memory, where a pool or a limit is on.

    It gets an object with `requested_bytes`, `device`, `kind` and `limit_bytes`, may free what the program can do
    without, and returns True if another try is worthwhile. An `Exception` that it raises is shown, counts as False, and
    the next callback is called. Any other (`sys.exit` raises one), and what a signal handler raises meanwhile, goes on
    to the program, in the place of the error.

    Callbacks run on the allocating thread, in the order of their registration, and in several threads at once if
    several run out. An allocation inside one gets what is cached and at rest; beyond that it fails at once, with its
    own explanation. Registered twice, one is called once.

    Can be used as a decorator: the result is the callback. `remove_out_of_memory_callback` is the way back.
    """
    if not callable(callback):
        raise TypeError(f"expected a function to call, got {callback!r}")
    return _out_of_memory.add_callback(callback)


def remove_out_of_memory_callback(callback: Callable[[Any], object]) -> None:
    """Have a callback of `on_out_of_memory` called no more. Does nothing if it isn't registered."""
    _out_of_memory.remove_callback(callback)


class borrowed:
    """The pool and a recording for the duration of a job, unless they are on already; afterwards all is as it was.

    Jobs may overlap: what the first has switched on, the last switches off. Where the runtime can't be observed the
    job goes on without, and `reason` says why.
    """

    _jobs: ClassVar[set[borrowed]] = set()
    _began_recording = False
    _began_caching = False

    def __init__(self) -> None:
        self.reason: str | None = None

    def __enter__(self) -> borrowed:
        try:
            self._take()
        except RuntimeError as error:
            self._give_back()
            self.reason = str(error)
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._give_back()
        except BaseException:
            # Ctrl-C may come at any step, and each may be done again.
            self._give_back()
            raise

    def _take(self) -> None:
        with _tracking._lock:
            is_first = not borrowed._jobs
            if is_first:
                # What is to be undone is known before anything is done.
                borrowed._began_recording = not _tracking.is_tracking()
                borrowed._began_caching = not _native.pool_status()[1]
            borrowed._jobs.add(self)
            if is_first:
                _begin()
                if borrowed._began_caching:
                    _native.pool_cache(True)

    def _give_back(self) -> None:
        with _tracking._lock:
            if borrowed._jobs == {self}:
                if borrowed._began_caching:
                    _native.pool_cache(False)
                if borrowed._began_recording:
                    _tracking.stop()
                    if not _native.pool_status()[0] and _native.hook_status()["phase"] == "installed":
                        _native.hook_remove()
            borrowed._jobs.discard(self)

    @property
    def owns_cache(self) -> bool:
        """Whether what is cached came from jobs alone."""
        return self in borrowed._jobs and borrowed._began_caching


def _text(limit: int | str) -> str:
    # Whole numbers of NumPy's will do, too.
    if isinstance(limit, bool) or not (isinstance(limit, str) or hasattr(type(limit), "__index__")):
        raise TypeError(f"expected a size as a number of bytes or a text such as '4GiB', got {limit!r}")
    text = limit if isinstance(limit, str) else str(operator.index(limit))
    _native.size_parse(text)
    return text


def _set_limit(size: int | None, share: float | None, device: Any) -> int | None:
    """Set the limit of one device, as bytes or a share of its capacity; neither is none. The limit before."""
    _begin()
    name = _known_device(device)
    if share is not None:
        capacity = _native.device_room(name)[0]
        if capacity is None:
            raise RuntimeError(f"the capacity of `{name}` is unknown: give the limit in bytes")
        size = int(capacity * share)
        if size == 0:
            raise ValueError(f"expected a share of the capacity of at least one byte, got {share:g} of {capacity} B")
    return _native.pool_limit(name, size)


def _begin() -> None:
    """Have the hook in and the pool know what is in use."""
    _tracking.start()
    _out_of_memory.install()
    _runtime.name_devices()
    if not _native.pool_status()[0]:
        _native.pool_adopt()


def _known_device(device: Any) -> str:
    """The name of a device. Brings SYCL up and has the hook see the device, if the program has not used it yet."""
    _runtime.bring_up()
    try:
        _native.hook_come_in()
    except RuntimeError as error:
        raise RuntimeError(f"the device can't be seen yet ({error}): allocate an array first") from error
    name = _accounting._filter(device)
    if _native.device_room(name) == (None, None) and not _runtime.introduce(name):
        raise RuntimeError(f"the runtime has not told of `{name}` yet: allocate an array there first")
    return name
