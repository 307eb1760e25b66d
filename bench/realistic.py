"""What recording costs a realistic program: passes of `script.py` with it off and on, in one process.

Only the passes are timed; starting and stopping is between them, and `startup.py` measures what that takes.
"""

from __future__ import annotations

import time

import dpctl.utils
import dpnp

import dpmem
import machine
import script
import table
from rounds import Figure, alternate

TARGET = 1.03
STACK_DEPTH = 16


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    data = script.Data()
    expected = script.work(data)
    queue = dpnp.empty(1).sycl_queue

    def timed() -> float:
        begun = time.perf_counter()
        found = script.work(data)
        dpctl.utils.SequentialOrderManager[queue].wait()
        spent = time.perf_counter() - begun
        if found != expected:
            raise AssertionError(f"expected the checksum {expected!r}, got {found!r}")
        return spent

    def recorded() -> float:
        dpmem.start(stack_depth=STACK_DEPTH)
        try:
            return timed()
        finally:
            dpmem.stop()

    times = alternate({"off": timed, "on": recorded}, rounds=2 if quick else 12)
    blocks = dpmem.memory_stats(queue.sycl_device.filter_string)["allocation.all.allocated"]
    off = f"; off {times.median('off'):.2f} s a pass, {blocks:,} device and shared allocations"
    return [times.figure("realistic script, recording with 16 frames", "on", TARGET, off)]


if __name__ == "__main__":
    table.main(measure, __doc__)
