"""For programs on a simulated machine: what a test may order of its devices, and ask."""

from __future__ import annotations

import ctypes
import os

ALL = 2**64 - 1

_library = ctypes.CDLL(os.environ["SIMULATED_LIBRARY"])
for _name in ("used", "free", "host_used"):
    getattr(_library, f"simulated_{_name}").restype = ctypes.c_uint64


def used(device: int = 0) -> int:
    """Bytes of this process's device and shared allocations there."""
    return _told(_library.simulated_used(device), device)


def free(device: int = 0) -> int:
    """Bytes that nobody uses there."""
    return _told(_library.simulated_free(device), device)


def host_used() -> int:
    """Bytes of this process's host allocations on simulated devices."""
    return int(_library.simulated_host_used())


def set_others(used_bytes: int, device: int = 0) -> None:
    """Other processes use so much from now on."""
    _ordered(_library.simulated_set_others(device, ctypes.c_uint64(used_bytes)), device)


def fail_allocation(number: int = 1, device: int = 0) -> None:
    """The `number`-th allocation from now fails, 1 being the next; 0 takes the order back."""
    _ordered(_library.simulated_fail_at(device, ctypes.c_uint64(number)), device)


def delay_frees(milliseconds: int, device: int = 0) -> None:
    """From now on, freed memory can be had again only so much later."""
    _ordered(_library.simulated_delay_frees(device, ctypes.c_uint64(milliseconds)), device)


def _told(value: int, device: int) -> int:
    if value == ALL:
        raise LookupError(f"there is no simulated device {device}")
    return int(value)


def _ordered(done: int, device: int) -> None:
    if not done:
        raise LookupError(f"there is no simulated device {device}")
