"""What recording adds to one allocation and its free: direct, recorded without frames, recorded with 16 frames."""

from __future__ import annotations

from collections.abc import Callable

import dpmem
import machine
import table
from allocator import Allocator
from rounds import Figure, alternate

KIB = 1024
#: Bytes a block, and pairs timed at a stretch.
SIZES = ((256, 20_000), (4 * KIB, 20_000), (64 * KIB, 5_000), (800_000, 2_000))
TARGETS = {(4 * KIB, 0): 1.2, (4 * KIB, 16): 1.35}
#: Python frames below the allocation, more than are kept.
STACK = 20


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    allocator = Allocator()
    figures = []
    for size, count in SIZES:
        ways: dict[str, Callable[[], float]] = {"direct": _direct(allocator, size, count)}
        for depth in (0, 16):
            ways[str(depth)] = _recorded(allocator, size, count, depth)
        times = alternate(ways, rounds=3 if quick else 41)
        for depth in (0, 16):
            label = f"allocate and free {_human(size)}, " + ("16 frames" if depth else "no frames")
            detail = f"; {times.median(str(depth)):.0f} ns, direct {times.median('direct'):.0f} ns"
            figures.append(times.figure(label, str(depth), TARGETS.get((size, depth)), detail))
    return figures


def _direct(allocator: Allocator, size: int, count: int) -> Callable[[], float]:
    def run() -> float:
        return at_depth(STACK, lambda: _nanoseconds(allocator, size, count))

    return run


def _recorded(allocator: Allocator, size: int, count: int, depth: int) -> Callable[[], float]:
    def run() -> float:
        dpmem.start(stack_depth=depth)
        try:
            before = allocator.recorded()
            spent = at_depth(STACK, lambda: _nanoseconds(allocator, size, count))
            seen = allocator.recorded() - before
        finally:
            dpmem.stop()
        expected = count + count // 10
        if seen != expected:
            raise AssertionError(f"expected {expected} recorded allocations, got {seen}")
        return spent

    return run


def at_depth(frames: int, function: Callable[[], float]) -> float:
    """Call a function from under so many Python frames."""
    return at_depth(frames - 1, function) if frames else function()


def _nanoseconds(allocator: Allocator, size: int, count: int) -> float:
    allocator.pairs(size, count // 10)
    return allocator.pairs(size, count) / count


def _human(size: int) -> str:
    return f"{size // KIB} KiB" if size % KIB == 0 else f"{size:,} bytes"


if __name__ == "__main__":
    table.main(measure, __doc__)
