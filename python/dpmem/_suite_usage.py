"""What a part of a test suite did with device memory, on each device.

Everything is counted between two moments at which nothing is left to happen: queued work has ended, and Python's
cyclic collector has run. A reading that can't be trusted is no reading: `Unknown` says why.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass

from dpmem import _accounting, _live, _native, _recording, _runtime

#: How long queued work is waited for once it has failed to end, in seconds: it may never, and a suite has many tests.
STUCK_S = 1.0
_patience_s = _live.WAIT_S


class Unknown(Exception):
    """Nothing can be said about the memory of this test, and why."""


@dataclass(frozen=True)
class Block:
    """A block in use."""

    address: int
    bytes: int
    #: When it was allocated, in ticks.
    since: int
    device: str | None


@dataclass(frozen=True)
class DeviceUsage:
    """What a part did on one device."""

    device: str
    #: Device and shared memory in use at its beginning, and the most that was.
    begun_bytes: int
    peak_bytes: int
    #: Allocations of all kinds.
    alloc_count: int
    allocated_bytes: int

    @property
    def used_bytes(self) -> int:
        """How much more was in use at the peak than at the beginning."""
        return max(self.peak_bytes - self.begun_bytes, 0)


@dataclass(frozen=True)
class Peak:
    """What filled the ledger's peak: sums over all devices and kinds."""

    bytes: int
    parts: list[_native._PeakPart]


@dataclass(frozen=True)
class Usage:
    """What a part did."""

    #: The moment at which it began, in ticks.
    begun: int
    devices: list[DeviceUsage]
    #: None if it isn't known, for the reason in `no_peak`.
    peak: Peak | None
    no_peak: str


class Measurement:
    """A part that is being measured. One at a time; begins when it is made."""

    def __init__(self) -> None:
        settle()
        _require_observation()
        _runtime.name_devices()
        self._recording = _native.recording_id()
        self._before = {name: _counts(name) for name in _devices()}
        for name in self._before:
            _native.row_reset_peak(name)
        _accounting.peaks_before_reset.clear()
        # Under `dpmem run` the peak is that of the run.
        self._run_peak = _native.peak_parts()[0] if _recording.belongs_to_run else None
        if self._run_peak is None:
            _native.peak_restart()
        self.begun = _native.ticks()

    def end(self) -> Usage:
        """What was done since, once queued work has ended. Raises Unknown."""
        peak, no_peak = self._composition()
        settle()
        self._require_whole()
        if _native.device_unnamed():
            _runtime.name_devices()
        if _native.device_unnamed():
            raise Unknown("it is not known which device is which")
        return Usage(self.begun, [self._device(name) for name in _devices()], peak, no_peak)

    def in_use(self) -> list[Block]:
        """The blocks in use now; `settle` first. Raises Unknown."""
        self._require_whole()
        return [Block(*block) for block in _native.live_births()]

    def _require_whole(self) -> None:
        _require_observation()
        if _native.recording_id() != self._recording:
            raise Unknown("recording was stopped and started anew during the test")

    def _composition(self) -> tuple[Peak | None, str]:
        if not _native.hook_status()["recording"] or _native.recording_id() != self._recording:
            return None, "recording was stopped"
        total, parts = _native.peak_parts()
        if total == self._run_peak:
            return None, "the run had a higher peak before; its report tells what filled that"
        if parts is None:
            return None, "other threads kept allocating while it was read"
        return Peak(total, parts), ""

    def _device(self, name: str) -> DeviceUsage:
        begun, count, allocated = self._before.get(name, (0, 0, 0))
        _, now_count, now_allocated = _counts(name)
        peak = max(_native.row_in_use(name, "total")[2], _accounting.peaks_before_reset.get(name, 0))
        return DeviceUsage(name, begun, peak, now_count - count, now_allocated - allocated)


def settle() -> None:
    """Wait for queued work, have cyclic garbage collected, and wait for what that left to do. Raises Unknown."""
    global _patience_s
    patience = _patience_s
    ended = _runtime.drain(patience)
    if gc.collect():
        ended = _runtime.drain(patience) and ended
    _patience_s = _live.WAIT_S if ended else STUCK_S
    if not ended:
        raise Unknown(f"queued work did not end within {_native.human_duration(patience)}")


def _require_observation() -> None:
    status = _native.hook_status()
    if status["fault"]:
        raise Unknown(f"recording ended after a fault of dpmem: {status['fault']}")
    if not status["recording"] or status["phase"] not in ("armed", "installed"):
        raise Unknown(status["reason"] or "recording was stopped during the test")
    if not status["proved"] and status["unseen"]:
        raise Unknown("dpmem did not see the allocations of this runtime")


def nothing_to_observe() -> str | None:
    """Why a test can't have used device memory that dpmem sees; None if it can have."""
    return None if "dpctl" in sys.modules else "dpctl is not loaded in this process"


def _devices() -> list[str]:
    if not _native.hook_runtime_is_up():
        return []
    return [_runtime.root_filter(device) for device in _runtime.devices()]


def _counts(device: str) -> tuple[int, int, int]:
    """Device and shared memory in use, number and bytes of allocations of all kinds."""
    on_device, host = (_native.row_totals(device, kind) for kind in ("total", "host"))
    return _native.row_in_use(device, "total")[0], on_device[1] + host[1], on_device[0] + host[0]
