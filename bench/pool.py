"""What the pool is worth: an operation in a loop, allocation pairs, the realistic script, and a loop over chunks.

Modes alternate in one process. "pool" is the pool alone, "recorded" the pool with recording and 16 frames, as under
`dpmem run --pool`; "stock" is without dpmem's hook. `BENCH_CLOCK=processor` has processor time of all threads measured
and not wall-clock time, for a machine on which others are at work.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dpctl.memory
import dpctl.utils
import dpnp
import numpy

import dpmem
import machine
import script
import table
from dpmem import _native
from rounds import AGAIN, Figure, Times, alternate, judge

#: Numbers of elements, operations a round, and the most that pool/out= may be.
LOOPS = ((1_000, 2000, 1.2), (10_000, 2000, 1.2), (100_000, 600, 1.15), (1_000_000, 80, 1.15), (10_000_000, 8, 1.15))
#: Sizes in bytes, and how many times as fast as direct a pair must be.
PAIRS = ((4_096, 5), (800_000, 40))
CHUNKS, CHUNK_BYTES = 5, 80_000_000
now = time.process_time if os.environ.get("BENCH_CLOCK") == "processor" else time.perf_counter


@contextlib.contextmanager
def pooled(recorded: bool = False) -> Iterator[None]:
    """The pool on, with recording or without."""
    dpmem.enable_pool()
    if not recorded:
        dpmem.stop()
    try:
        yield
    finally:
        dpmem.disable_pool()
        dpmem.stop()


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    figures: list[Figure] = []
    for size, count, target in LOOPS[:2] if quick else LOOPS:
        figures += operation(size, count // 10 if quick else count, target, rounds=2 if quick else 7)
    for size, least in PAIRS:
        figures += pairs(size, least, rounds=2 if quick else 9)
    figures += realistic(rounds=2 if quick else 7)
    figures += chunks(rounds=2 if quick else 7)
    return figures


def operation(size: int, count: int, target: float, rounds: int) -> list[Figure]:
    """`c = a + b` in a loop, against `add(a, b, out=c)`."""
    a, b, c = dpnp.arange(size, dtype="f8"), dpnp.ones(size), dpnp.empty(size)
    queue = a.sycl_queue

    def timed(work: Callable[[], object]) -> float:
        for _ in range(5):
            work()
        wait(queue)
        begun = now()
        for _ in range(count):
            work()
        wait(queue)
        return now() - begun

    def reusing() -> object:
        return dpnp.add(a, b, out=c)

    kept: list[object] = [None]

    def plain() -> None:
        kept[0] = a + b

    def with_pool(recorded: bool) -> float:
        with pooled(recorded):
            return timed(plain)

    def keeping() -> float:
        # The memory is there, and none is given back meanwhile: no marker, no wait, and no free.
        with pooled():
            ready = [dpnp.zeros_like(a) for _ in range(count + 5)]
            wait(queue)
            ready.clear()
            results: list[object] = []
            return timed(lambda: results.append(a + b))

    ways = {
        "out": lambda: timed(reusing),
        "stock": lambda: timed(plain),
        "pool": lambda: with_pool(False),
        "recorded": lambda: with_pool(True),
    }
    if size <= 1_000:
        # So many larger results don't fit into the processor's caches.
        ways["kept"] = keeping
    times = alternate(ways, rounds)
    name = f"c = a + b, {size:,} elements"
    each = f"; {times.median('pool') / count * 1e6:.1f} µs, out= {times.median('out') / count * 1e6:.1f} µs"
    figures = [
        times.figure(f"{name}: pool / out=", "pool", target, each),
        times.figure(f"{name}: pool, recorded / out=", "recorded"),
    ]
    if "kept" in ways:
        figures.append(times.figure(f"{name}: memory that is there, none given back / out=", "kept"))
    least = {100_000: 3.0, 1_000_000: 5.0}.get(size)
    return [*figures, gain(times, f"{name}: stock / pool", "stock", "pool", least)]


def gain(times: Times, name: str, slow: str, fast: str, least: float | None) -> Figure:
    """How many times as fast one way is as another."""
    ratio = times.median(slow) / times.median(fast)
    wanted, verdict = ("–", "–") if least is None else (f"≥ {least:g}×", judge(-ratio, -least))
    return Figure(name, f"{ratio:.2f}×", str(times.ratio(AGAIN)), wanted, verdict)


def pairs(size: int, least: float, rounds: int) -> list[Figure]:
    """Allocate and free, as the adapter's caller does: from C, through the runtime's own interface."""
    kept = dpctl.memory.MemoryUSMDevice(64)
    with pooled():
        dpctl.memory.MemoryUSMDevice(size, queue=kept.sycl_queue)
        context, device, _ = next(place for place in _native.pool_places() if place[2] == "device")
        allocate, free = _native.hook_entry("urUSMDeviceAlloc"), _native.hook_entry("urUSMFree")
    if allocate is None or free is None:
        raise RuntimeError("the hook was not in")
    count, loop = 20_000, _compile()

    def spent(which: int) -> float:
        loop(allocate[which], free[which], context, device, size, 100)
        nanoseconds = loop(allocate[which], free[which], context, device, size, count)
        if nanoseconds < 0:
            raise MemoryError(f"expected {size} bytes of device memory, got none")
        return float(nanoseconds)

    def with_pool(recorded: bool) -> float:
        with pooled(recorded):
            return spent(0)

    ways = {"direct": lambda: spent(1), "pool": lambda: with_pool(False), "recorded": lambda: with_pool(True)}
    times = alternate(ways, rounds)
    per_pair = {way: times.median(way) / count for way in ways}
    name = f"allocate and free {size:,} bytes: direct / pool"
    told = gain(times, name, "direct", "pool", least)
    detail = ", ".join(f"{way} {per_pair[way]:.0f} ns" for way in ways)
    return [Figure(told.measure, f"{told.value}; {detail}", told.again, told.target, told.verdict)]


def realistic(rounds: int) -> list[Figure]:
    """Passes of `script.py`."""
    data = script.Data()
    expected = script.work(data)
    queue = dpnp.empty(1).sycl_queue
    shares: list[float] = []

    def timed() -> float:
        begun = now()
        found = script.work(data)
        wait(queue)
        spent = now() - begun
        if found != expected:
            raise AssertionError(f"expected the checksum {expected!r}, got {found!r}")
        return spent

    def with_pool(recorded: bool) -> float:
        with pooled(recorded):
            spent = timed()
            # The pool's own peak of what is in use is that of the process; both of a recording begin with it.
            if recorded:
                shares.append(dpmem.max_memory_reserved() / dpmem.max_memory_allocated())
            return spent

    ways = {"stock": timed, "pool": lambda: with_pool(False), "recorded": lambda: with_pool(True)}
    times = alternate(ways, rounds)
    detail = f"; stock {times.median('stock'):.2f} s"
    most = max(shares)
    return [
        times.figure("realistic script: pool / stock", "pool", 0.7, detail),
        times.figure("realistic script: pool, recorded / stock", "recorded"),
        Figure("realistic script: peak reserved / peak in use", f"{most:.2f}×", "–", "≤ 1.25×", judge(most, 1.25)),
    ]


def chunks(rounds: int) -> list[Figure]:
    """Load, send, square, sum, fetch, for each of a few files."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{n}.npy" for n in range(CHUNKS)]
        for n, path in enumerate(paths):
            # Not whole numbers of one value: dpnp squares zeros at less than half the speed of others.
            numpy.save(path, numpy.random.default_rng(n).random(CHUNK_BYTES // 8))

        def timed() -> float:
            begun = now()
            for path in paths:
                x = dpnp.array(numpy.load(path))
                y = x**2
                float(dpnp.asnumpy(y.sum()))
                del x, y
            return now() - begun

        def with_pool(is_filled: bool) -> float:
            with pooled():
                if is_filled:
                    timed()
                return timed()

        x, y = dpnp.empty(CHUNK_BYTES // 8), dpnp.empty(CHUNK_BYTES // 8)
        memory = x.get_array().usm_data

        def by_hand() -> float:
            begun = now()
            for path in paths:
                memory.copy_from_host(numpy.load(path).view("u1"))
                dpnp.power(x, 2, out=y)
                float(dpnp.asnumpy(y.sum()))
            return now() - begun

        timed()
        by_hand()
        pool, filled = (lambda: with_pool(False)), (lambda: with_pool(True))
        times = alternate({"stock": timed, "pool": pool, "filled": filled, "hand": by_hand}, rounds)
    name = f"{CHUNKS} chunks of 80 MB: stock /"
    told = gain(times, f"{name} pool", "stock", "pool", 2.5)
    detail = f"; stock {times.median('stock'):.2f} s"
    return [
        Figure(told.measure, told.value + detail, told.again, told.target, told.verdict),
        gain(times, f"{name} pool, filled by an earlier pass", "stock", "filled", None),
        gain(times, f"{name} buffers made once, by hand", "stock", "hand", None),
    ]


def wait(queue: object) -> None:
    dpctl.utils.SequentialOrderManager[queue].wait()
    queue.wait()  # type: ignore[attr-defined]


def _compile() -> Callable[..., int]:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "ur_pairs.so"
        source = Path(__file__).with_name("ur_pairs.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        loop = ctypes.CDLL(str(library)).ur_pairs
    loop.restype = ctypes.c_int64
    loop.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_size_t] * 2
    return loop


if __name__ == "__main__":
    table.main(measure, __doc__)
