"""Functions that go in chunks, and a program that maps each and tells what was planned, used and found.

python corpus.py DEVICE MEGABYTES BUDGET NAME...

Prints a line of JSON for each function: the planned peak, the most that was in use and that was reserved, the number of
chunks, and how the result compares with that of the whole at once, computed on the CPU device or with NumPy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dpnp
import numpy

import dpmem
from dpmem import _native

COLUMNS = 64


@dataclass(frozen=True)
class Case:
    """A function of rows of 64 numbers, how its results are put together, and how exact that must be."""

    function: Callable[[Any], Any]
    reduce: Any = None
    #: 0: the same bits as in one piece; else a bound for the relative error.
    tolerance: float = 0.0
    dtype: str = "f8"
    #: Whether MKL does it, which simulated devices can't.
    cpu_only: bool = False


_resident: dict[str, Any] = {}


def resident(dtype: str) -> Any:
    """A matrix that stays on the device."""
    if dtype not in _resident:
        weights = numpy.random.default_rng(7).integers(-9, 9, (COLUMNS, COLUMNS))
        _resident[dtype] = dpnp.asarray(weights.astype(dtype))
    return _resident[dtype]


def horner(x: Any) -> Any:
    """Temporaries made and dropped in a loop."""
    y = x * 0 + 1
    for power in range(12):
        y = y * x + power
    return y


def normalised(x: Any) -> Any:
    """Rows with mean 0 and deviation 1."""
    return (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + 1)


CASES = {
    "square_sum": Case(lambda x: (x**2).sum(), "sum", 1e-13),
    "chain": Case(lambda x: 2 * x + x * 3 - 1),
    "transcendental": Case(lambda x: dpnp.exp(dpnp.sin(x) * 2 + 1) / 3),
    "horner": Case(horner),
    "identity": Case(lambda x: x),
    "view": Case(lambda x: x[:, 3:7]),
    "narrowed": Case(lambda x: x.astype("f4") + 1),
    "row_sum": Case(lambda x: x.sum(axis=1)),
    "row_std": Case(lambda x: x.std(axis=1)),
    "column_mean": Case(lambda x: x, "mean", 1e-12),
    "column_max": Case(lambda x: x * 2, "max"),
    "deviation": Case(lambda x: ((x - 1) ** 2).mean(), "mean", 1e-13),
    "sort": Case(lambda x: dpnp.sort(x, axis=1)),
    "argsort": Case(lambda x: dpnp.argsort(x, axis=1)),
    "cumulative": Case(lambda x: dpnp.cumsum(x, axis=1)),
    "masked": Case(lambda x: x[x > 0.5], "concatenate"),
    "where": Case(lambda x: dpnp.where(x > 0, x, -x)),
    "normalised": Case(normalised),
    "integer_matmul": Case(lambda x: x @ resident("i8"), dtype="i8"),
    "matmul": Case(lambda x: x @ resident("f8"), None, 1e-13, cpu_only=True),
    "gram": Case(lambda x: x.T @ x, "sum", 1e-12, cpu_only=True),
    "fft": Case(lambda x: dpnp.fft.fft(x, axis=1), cpu_only=True),
    "own_reduction": Case(lambda x: x.sum(axis=0), lambda a, b: dpnp.hypot(a, b), 1e-12),
}


def data(megabytes: float, dtype: str) -> numpy.ndarray[Any, Any]:
    """So much of it, always the same."""
    rows = int(megabytes * 1e6) // (8 * COLUMNS)
    found = numpy.random.default_rng(3).standard_normal((rows, COLUMNS)) * 3
    return found.astype(dtype)


def run(name: str, device: str, source: numpy.ndarray[Any, Any], budget: float) -> dict[str, Any]:
    """Plan, map, compare."""
    case = CASES[name]
    plan = dpmem.plan_chunks(case.function, source, device=device or None, budget=budget, reduce=case.reduce)
    with dpmem.track(name):
        dpmem.reset_peak_memory_stats(plan.device)
        _native.pool_reset_peak(plan.device)
        before = dpmem.memory_allocated(plan.device)
        got = dpmem.map_chunks(case.function, source, plan=plan, device=device or None, reduce=case.reduce)
        used = dpmem.max_memory_allocated(plan.device) - before
        reserved = dpmem.max_memory_reserved(plan.device) - before
    return {
        "name": name,
        "peak_bytes": plan.peak_bytes,
        "used_bytes": used,
        "reserved_bytes": reserved,
        "chunks": plan.chunks,
        "rows": plan.rows,
        "largest_rows": plan.largest_rows,
        "limited_by_memory": any("the largest that fits" in reason for reason in plan.reasons),
        "wrong": difference(case, got, source, plan.rows),
    }


def difference(case: Case, got: Any, source: numpy.ndarray[Any, Any], rows: int) -> str | None:
    """What is wrong with a result, if anything is."""
    if callable(case.reduce):
        parts = [dpnp.asarray(source[at : at + rows]).sum(axis=0) for at in range(0, len(source), rows)]
        expected = dpnp.sqrt(sum(part * part for part in parts))
    else:
        expected = case.function(dpnp.asarray(source))
        if case.reduce in ("mean", "max") and expected.ndim:
            expected = getattr(dpnp, case.reduce)(expected, axis=0)
    expected = dpnp.asnumpy(expected) if isinstance(expected, dpnp.ndarray) else numpy.asarray(expected)
    got = numpy.asarray(got)
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return f"expected {expected.shape} {expected.dtype}, got {got.shape} {got.dtype}"
    if case.tolerance == 0:
        return None if got.tobytes() == expected.tobytes() else f"bits differ, at most by {abs(got - expected).max()}"
    error = float(numpy.max(abs(got - expected)) / numpy.max(abs(expected)))
    return None if error <= case.tolerance else f"relative error {error}"


def main() -> None:
    """As the module's text says."""
    device, megabytes, budget, *names = sys.argv[1:]
    for name in names:
        source = data(float(megabytes), CASES[name].dtype)
        print(json.dumps(run(name, device, source, float(budget))), flush=True)


if __name__ == "__main__":
    main()
