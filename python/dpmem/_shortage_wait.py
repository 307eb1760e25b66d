"""Waiting for queued work in a shortage of device memory: for which, and how long.

Runs inside an allocation of the program's. Every wait lets the GIL go and the handlers of signals run; what these raise
passes.
"""

from __future__ import annotations

import _thread
import time

from dpmem import _native, _runtime

#: How long queued work is waited for of which nothing ends, in seconds.
_PATIENCE_S = 3600.0
#: The search for queues takes at most this part of the time of a program that it doesn't help.
_SEARCH_SHARE = 0.05

#: When a search for queues, after one that did not help, is worthwhile again.
_next_search = 0.0
#: Of each thread: whether it has given waiting up for its newest request that failed.
_own = _thread._local()


def begin() -> None:
    """Another request has failed on this thread."""
    _own.given_up = False


def wait(requested: int, device: str | None, *, by_limit: bool) -> bool:
    """Wait for the work of a device, or of all, that dpctl knows of: until the limit leaves room, or where the runtime
    has refused until a piece of it ends. Whether some is left."""
    if _has_given_up():
        return False
    waiting, limited = _runtime.Waiting(device, search=False), device if by_limit else None
    return _wait_for(waiting, requested, limited, pieces=limited is None)


def search(requested: int, device: str | None, *, by_limit: bool) -> bool:
    """Look for queues of a device whose work dpctl doesn't order, and wait for that; whether there was any.

    The pool knows them without a search.
    """
    global _next_search
    if _has_given_up() or _native.pool_status()[1] or time.monotonic() < _next_search:
        return False
    before = time.monotonic()
    waiting = _runtime.Waiting(device)
    if not waiting.begun:
        _next_search = time.monotonic() + (time.monotonic() - before) / _SEARCH_SHARE
        return False
    _wait_for(waiting, requested, device if by_limit else None, pieces=False)
    return True


def _wait_for(waiting: _runtime.Waiting, requested: int, limited: str | None, *, pieces: bool) -> bool:
    pause = 0.0002
    most, left, since = room_left(limited), waiting.left, time.monotonic()
    while not waiting.is_over():
        time.sleep(pause)
        pause = min(2 * pause, 0.005)
        room = room_left(limited)
        if (room is not None and room >= requested) or (pieces and waiting.left < left):
            break
        # Room, or the end of a piece of work: something gets done.
        if waiting.left < left or (room is not None and most is not None and room > most):
            most, left, since = room, waiting.left, time.monotonic()
        elif time.monotonic() - since > _PATIENCE_S:
            _own.given_up = True
            return False
    return not waiting.is_over()


def room_left(device: str | None) -> int | None:
    """Bytes that a limit leaves, cached ones included; None without a limit."""
    limit = _native.pool_limit_of(device) if device else None
    if limit is None:
        return None
    reading = _native.pool_reading(device)
    return int(limit - reading["reserved_bytes"] + reading["cached_bytes"])


def given_up_after_s() -> float | None:
    """How long this thread waited for work of which nothing ended; None if it did not give up since `begin`."""
    return _PATIENCE_S if _has_given_up() else None


def _has_given_up() -> bool:
    return bool(getattr(_own, "given_up", False))
