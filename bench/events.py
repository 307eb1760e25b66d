"""Memory that a long recording takes: 10 million allocations and as many frees, from 100 sites.

The same calls are made once before without recording, so that what the runtime itself keeps is there already.
"""

from __future__ import annotations

from collections.abc import Callable

import dpmem
import machine
import table
from allocator import Allocator
from rounds import Figure, judge

TARGET_MB = 50.0
SITES = 100
ROUNDS = 10
#: Bytes a block, in turn.
SIZES = (64, 256, 1024, 4096)


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    pairs = (100_000 if quick else 10_000_000) // (SITES * ROUNDS)
    allocator = Allocator()
    sites = _sites(allocator, pairs)
    control = _growth(sites)
    before = machine.resident_bytes()
    dpmem.start()
    growth = _growth(sites)
    seen = allocator.recorded()
    dpmem.stop()
    growth = max(growth, machine.resident_bytes() - before)
    expected = SITES * ROUNDS * pairs
    if seen != expected:
        raise AssertionError(f"expected {expected} recorded allocations, got {seen}")
    megabytes = growth / 1e6
    return [
        Figure(
            f"growth of the process over {2 * expected:,} events from {SITES} sites",
            f"{megabytes:.1f} MB; {control / 1e6:.1f} MB without recording",
            target=f"≤ {TARGET_MB:g} MB",
            verdict=judge(megabytes, TARGET_MB),
        )
    ]


def _growth(sites: list[Callable[[], int]]) -> int:
    """The most by which the process was larger than at the start while it made the calls."""
    start = most = machine.resident_bytes()
    for _ in range(ROUNDS):
        for site in sites:
            site()
        most = max(most, machine.resident_bytes())
    return most - start


def _sites(allocator: Allocator, pairs: int) -> list[Callable[[], int]]:
    """Functions on lines of their own, each of which allocates and frees so many times."""
    lines = (f"def site_{n}(): return pairs({SIZES[n % len(SIZES)]}, {pairs})" for n in range(SITES))
    namespace: dict[str, Callable[[], int]] = {"pairs": allocator.pairs}  # type: ignore[dict-item]
    exec(compile("\n".join(lines), "sites.py", "exec"), namespace)
    return [namespace[f"site_{n}"] for n in range(SITES)]


if __name__ == "__main__":
    table.main(measure, __doc__)
