"""Data in files, chunk by chunk: `sum(x**2)` over 5 and over 40 files of 80 MB that the page cache holds.

*loop* is the loop as people write it (load, `dpnp.array`, `**2`, `sum`, `asnumpy`), *numpy* the same with NumPy,
*memmap* with NumPy on memmaps, *dask* with `dask.array` and threads where dask is installed, *map* is
`dpmem.map_chunks`, planning included, *planned* the same with a plan made before. *least* is plain reading into one
buffer, then the same computation on device arrays that are there and used again. Ways alternate in one process.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpctl.utils
import dpnp
import numpy

import dpmem
import machine
import table
from rounds import Figure, Times, alternate, judge

FILE_BYTES = 80_000_000
COUNTS = (5, 40)
#: Elements of a chunk that costs nothing to compute, and how many there are.
SMALL, SMALL_CHUNKS = 128, 2000


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = written(Path(folder), 5 if quick else max(COUNTS))
        for count in COUNTS[:1] if quick else COUNTS:
            figures += over(paths[:count], rounds=2 if quick else {5: 7, 40: 3}[count])
        figures += written_out(paths[:5], Path(folder), rounds=2 if quick else 3)
    figures += each_chunk(rounds=2 if quick else 9)
    return figures


def written(folder: Path, count: int) -> list[Path]:
    """So many files, in the page cache afterwards."""
    values = numpy.random.default_rng(1).random(FILE_BYTES // 8)
    paths = [folder / f"{number:02}.npy" for number in range(count)]
    for number, path in enumerate(paths):
        numpy.save(path, values + number)
    return paths


def square_sum(x: Any) -> Any:
    return (x**2).sum()


def over(paths: list[Path], rounds: int) -> list[Figure]:
    """All ways of going through the files."""
    names = [str(path) for path in paths]
    expected = sum(float((numpy.load(path) ** 2).sum()) for path in paths)
    plan = dpmem.plan_chunks(square_sum, names, reduce="sum")
    ways: dict[str, Callable[[], float]] = {
        "map": lambda: float(dpmem.map_chunks(square_sum, names, reduce="sum")),
        "planned": lambda: float(dpmem.map_chunks(square_sum, names, reduce="sum", plan=plan)),
        "least": Least(paths).run,
        "loop": lambda: by_hand(paths),
        "numpy": lambda: sum(float((numpy.load(path) ** 2).sum()) for path in paths),
        "memmap": lambda: sum(float((numpy.load(path, mmap_mode="r") ** 2).sum()) for path in paths),
    }
    if importlib.util.find_spec("dask") is not None:
        ways["dask"] = lambda: with_dask(paths)

    def timed(way: Callable[[], float]) -> Callable[[], float]:
        def once() -> float:
            begun = time.perf_counter()
            found = way()
            spent = time.perf_counter() - begun
            if abs(found - expected) > 1e-9 * expected:
                raise AssertionError(f"expected {expected!r}, got {found!r}")
            return spent

        return once

    for way in ways.values():
        way()
    times = alternate({name: timed(way) for name, way in ways.items()}, rounds)
    what = f"`sum(x**2)` over {len(paths)} × 80 MB"
    told = ", ".join(f"{name} {times.median(name):.3f} s" for name in ways)
    rows = f"; {plan.chunks} chunks of {plan.rows * plan.row_bytes / 1e6:.1f} MB; {told}"
    figures = [
        gain(times, f"{what}: loop / map", "loop", 8.0, rows),
        gain(times, f"{what}: numpy / map", "numpy", 2.0),
        gain(times, f"{what}: memmap / map", "memmap", None),
        cost(times, f"{what}: map / least", "map", 1.3),
        cost(times, f"{what}: planned / least", "planned", None),
    ]
    if "dask" in ways:
        figures.append(gain(times, f"{what}: dask / map", "dask", None))
    return figures


def gain(times: Times, measure: str, way: str, least: float | None, detail: str = "") -> Figure:
    """How many times as long as `map_chunks` another way takes."""
    ratio = times.ratio(way)
    wanted, verdict = ("–", "–") if least is None else (f"≥ {least:g}×", judge(-ratio.median, -least))
    return Figure(measure, f"{ratio}{detail}", str(times.ratio("A/A")), wanted, verdict)


def cost(times: Times, measure: str, way: str, most: float | None) -> Figure:
    """How many times the least time a way takes."""
    ratio = times.median(way) / times.median("least")
    wanted, verdict = ("–", "–") if most is None else (f"≤ {most:g}×", judge(ratio, most))
    return Figure(measure, f"{ratio:.3f}×", str(times.ratio("A/A")), wanted, verdict)


class Least:
    """Reading into one buffer, and computing on arrays that are there."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths
        self._buffer = bytearray(FILE_BYTES)
        self._arrays = [dpnp.asarray(numpy.load(path)) for path in paths[:1]]
        self._squares = dpnp.empty_like(self._arrays[0])
        self._sums = [float((numpy.load(path) ** 2).sum()) for path in paths]

    def run(self) -> float:
        """The time counts; the sum is that of the files, though one array stands for all."""
        for path in self._paths:
            with path.open("rb", buffering=0) as file:
                file.seek(128)
                file.readinto(self._buffer)
            dpnp.power(self._arrays[0], 2, out=self._squares)
            float(self._squares.sum())
        return sum(self._sums)


def by_hand(paths: list[Path]) -> float:
    total = 0.0
    for path in paths:
        x = dpnp.array(numpy.load(path))
        y = x**2
        total += float(dpnp.asnumpy(y.sum()))
        del x, y
    return total


def with_dask(paths: list[Path]) -> float:
    import dask.array

    parts = [dask.array.from_array(numpy.load(path, mmap_mode="r"), chunks=FILE_BYTES // 64) for path in paths]
    return float((dask.array.concatenate(parts) ** 2).sum().compute(scheduler="threads"))


def written_out(paths: list[Path], folder: Path, rounds: int) -> list[Figure]:
    """A map to a file, beside NumPy's loop over a memmap."""
    out, names = folder / "out.npy", [str(path) for path in paths]
    size = FILE_BYTES // 8

    def mapped() -> None:
        dpmem.map_chunks(lambda x: x * 2 + 1, names, out=out)

    def with_numpy() -> None:
        target = numpy.lib.format.open_memmap(out, "w+", "f8", (size * len(paths),))
        for number, path in enumerate(paths):
            target[number * size : (number + 1) * size] = numpy.load(path) * 2 + 1
        target.flush()

    def timed(way: Callable[[], None]) -> Callable[[], float]:
        def once() -> float:
            out.unlink(missing_ok=True)
            begun = time.perf_counter()
            way()
            return time.perf_counter() - begun

        return once

    times = alternate({"map": timed(mapped), "numpy": timed(with_numpy)}, rounds)
    told = f"; map {times.median('map'):.2f} s, numpy {times.median('numpy'):.2f} s, both until it is on the disk"
    return [gain(times, f"`x * 2 + 1` over {len(paths)} × 80 MB into a file: numpy / map", "numpy", None, told)]


def each_chunk(rounds: int) -> list[Figure]:
    """What a chunk costs beyond its computation: tiny chunks, against the same calls on a tiny array."""
    data = numpy.ones(SMALL * SMALL_CHUNKS)
    plan = dpmem.plan_chunks(square_sum, data, reduce="sum")
    small = dpnp.asarray(data[:SMALL])
    queue = small.sycl_queue

    def by_map() -> float:
        begun = time.perf_counter()
        dpmem.map_chunks(square_sum, data, plan=plan, rows=SMALL, reduce="sum")
        return time.perf_counter() - begun

    def alone() -> float:
        dpmem.enable_pool()
        try:
            begun = time.perf_counter()
            for _ in range(SMALL_CHUNKS):
                dpnp.asnumpy(square_sum(small))
            spent = time.perf_counter() - begun
            dpctl.utils.SequentialOrderManager[queue].wait()
        finally:
            dpmem.disable_pool()
            dpmem.stop()
        return spent

    times = alternate({"alone": alone, "map": by_map}, rounds)
    beyond = (times.median("map") - times.median("alone")) / SMALL_CHUNKS * 1e6
    told = f"{beyond:.0f} µs; computing and fetching alone {times.median('alone') / SMALL_CHUNKS * 1e6:.0f} µs"
    return [Figure("a chunk, beyond its computation", told, str(times.ratio("A/A")), "≤ 200 µs", judge(beyond, 200))]


if __name__ == "__main__":
    table.main(measure, __doc__)
