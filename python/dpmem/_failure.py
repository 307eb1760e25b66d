"""An allocation that failed, how things stood then, and the failures that the report is to tell of."""

from __future__ import annotations

import sys

from dpmem import _native, _recording, _shortage_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    Call = tuple[int, CodeType, int]

#: Different failures that are kept for the report.
_FAILURES_MAX = 256
#: What failed, by place and reason, for the report.
failures: dict[tuple[object, ...], dict[str, Any]] = {}


class Failure:
    """An allocation that failed, and how things stood."""

    def __init__(self, requested: int, kind: str, device: str | None, by_limit: bool) -> None:
        self.requested_bytes = requested
        self.kind = kind
        self.device = device
        self.by_limit = by_limit
        capacity, largest = _native.device_room(device) if device else (None, None)
        self.capacity_bytes = capacity
        self.max_alloc_bytes = largest
        # Host memory takes no room on a device.
        self.limit_bytes = _native.pool_limit_of(device) if device and kind != "host" else None
        self.free_bytes: int | None = None
        #: Bytes that others hold, if the device's driver tells exactly what is free.
        self.others_bytes: int | None = None
        #: Who says so, and how far to trust it; why nobody knows if `free_bytes` is None.
        self.free_source = "no device to ask about"
        self.free_trust = "unknown"
        #: What other processes hold on the device, as far as it can be seen, the most first.
        self.other_processes: list[dict[str, Any]] = []
        self.holders: list[dict[str, Any]] = []
        #: How long ago that was so.
        self.holders_age_s = 0.0
        self.in_use_bytes = 0
        self.cached_bytes = 0
        self.referenced_bytes: int | None = None
        self.in_flight_bytes: int | None = None
        self.file, self.line, self.function = _user_line()
        #: How long queued work was waited for of which nothing ended; None if waiting was not given up.
        self.gave_up_after_s = _shortage_wait.given_up_after_s()
        self.text = ""
        #: The call that fails, while it does.
        self.call: Call | None = None


def keep(failure: Failure, held_most: str | None) -> None:
    """Count a failure for the report, with who held most, in words."""
    key = (failure.file, failure.line, failure.kind, failure.device, failure.by_limit)
    entry = failures.get(key)
    if entry is None:
        if len(failures) >= _FAILURES_MAX:
            return
        entry = failures[key] = {
            "file": failure.file,
            "line": failure.line,
            "kind": failure.kind,
            "device": failure.device,
            "by_limit": failure.by_limit,
            "count": 0,
            "requested_bytes": 0,
            "limit_bytes": failure.limit_bytes,
            "capacity_bytes": failure.capacity_bytes,
            "max_alloc_bytes": failure.max_alloc_bytes,
        }
    entry["held_most"] = held_most
    entry["count"] += 1
    entry["requested_bytes"] = max(entry["requested_bytes"], failure.requested_bytes)


def _user_line() -> tuple[str | None, int | None, str | None]:
    """The program's own line that is being executed: the first frame that is no library's."""
    frame = sys._getframe()
    while frame is not None:
        if _recording.is_own(frame.f_code.co_filename):
            code = frame.f_code
            # As the stacks of blocks have it; CPython 3.10 doesn't know the class.
            return code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None, None, None
