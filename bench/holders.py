"""How long it takes to find out who holds what, in a process with a million objects and a thousand arrays."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

import dpnp

import dpmem
import machine
import table
from rounds import Figure, judge

LIMIT_S = 2.0
#: Objects that the collector tracks, and arrays among them.
OBJECTS = 1_000_000
ARRAYS = 1000


class Record:
    """Some objects that the collector tracks: itself, lists, a dict, a tuple."""

    def __init__(self, number: int) -> None:
        self.parts = [[number], {"part": ([number], number)}]


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    repeats = 3 if quick else 15
    records = []
    while len(gc.get_objects()) < OBJECTS:
        records.extend(Record(number) for number in range(20_000))
    arrays = [dpnp.ones(100) for _ in range(ARRAYS)]
    for record, array in zip(records, arrays, strict=False):
        record.array = array
    tracked = len(gc.get_objects())

    def holders() -> None:
        found = dpmem.holders(arrays[ARRAYS // 2])
        if [holder.kind for holder in found] != ["container", "container"]:
            raise AssertionError(f"expected the array's two holders, found {found}")

    def live() -> None:
        found = dpmem.live()
        if found.gap or sum(len(block.holders) >= 2 for block in found) < ARRAYS:
            raise AssertionError(f"expected two holders of each of the {ARRAYS} arrays; {found.gap}")

    figures = [_seconds(f"`dpmem.holders()` with {tracked:,} tracked objects and {ARRAYS:,} arrays", holders, repeats)]
    dpmem.start()
    figures.append(_seconds(f"`dpmem.live()` there, the holders of all {ARRAYS:,}", live, repeats))
    dpmem.stop()
    return figures


def _seconds(what: str, run: Callable[[], None], repeats: int) -> Figure:
    times, processor = [], []
    for _ in range(repeats):
        begun, begun_processor = time.perf_counter(), time.thread_time()
        run()
        times.append(time.perf_counter() - begun)
        processor.append(time.thread_time() - begun_processor)
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    value = f"{median:.2f} s ({low:.2f}–{high:.2f}); processor time {statistics.median(processor):.2f} s"
    return Figure(what, value, target=f"≤ {LIMIT_S:g} s", verdict=judge(median, LIMIT_S))


if __name__ == "__main__":
    table.main(measure, __doc__)
