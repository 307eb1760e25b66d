"""Allocates and frees device memory as dpctl does, from a loop in C, so that Python is no part of the time."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import dpctl
import dpctl.memory

import dpmem

_SOURCE = Path(__file__).with_name("pairs.c")


class Allocator:
    """dpctl's device allocations on a queue of the default device."""

    def __init__(self) -> None:
        # A block of dpctl's, so that `dpmem.start()` has a queue to prove the hook with at once.
        self._kept = dpctl.memory.MemoryUSMDevice(4096)
        self._queue = self._kept.sycl_queue
        self._device: str = self._queue.sycl_device.filter_string
        interface = ctypes.CDLL(str(Path(dpctl.__file__).with_name("libDPCTLSyclInterface.so")))
        self._functions = [
            ctypes.cast(interface[name], ctypes.c_void_p) for name in ("DPCTLmalloc_device", "DPCTLfree_with_queue")
        ]
        self._pairs = _compile().pairs
        self._pairs.restype = ctypes.c_int64
        self._pairs.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t] * 2

    def recorded(self) -> int:
        """How many allocations of device memory dpmem has recorded."""
        return dpmem.memory_stats(self._device)["allocation.device.allocated"]

    def pairs(self, size: int, count: int) -> int:
        """Allocate `size` bytes and free them, `count` times, without the GIL: nanoseconds of this thread."""
        spent: int = self._pairs(*self._functions, self._queue.addressof_ref(), size, count)
        if spent < 0:
            raise MemoryError(f"expected {size} bytes of device memory, got none")
        return spent


def _compile() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "pairs.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
        return ctypes.CDLL(str(library))
