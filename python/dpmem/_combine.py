"""Results of chunks put together: sums, means, extremes, joined results, and functions of the user's.

A reduction has two halves. `reduce` runs on the device, right after the chunk's function, so that what comes to the
host is small; `part` turns its outcome into plain arrays on the host, and `push` adds them. Parts are combined in a
tree of neighbours of the same weight, so a float sum over n chunks has the rounding error of log2(n) additions, and in
the order of the chunks, so the function need not be commutative. `push` only adds, and can't fail; `merge` combines,
and where it fails what has been added stays: no chunk is done again whose part may have been combined already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from dpmem._fingerprint import fingerprint_of
from dpmem._form import Form

#: A part on the host: plain arrays.
Part = list["numpy.ndarray[Any, Any]"]
NAMES = ("sum", "mean", "min", "max", "concatenate")


class Tree:
    """Values combined pairwise, in their order: at most one is kept of each power of two."""

    def __init__(self) -> None:
        self.levels: list[tuple[int, Any]] = []

    def push(self, value: Any) -> None:
        """Add a value at the end."""
        self.levels.append((0, value))

    def merge(self, combine: Callable[[Any, Any], Any]) -> None:
        """Combine neighbours of the same weight.

        One pair at a time: `combine` may change its first argument, so a pair that is combined stays so, whatever
        comes of the next.
        """
        levels = self.levels
        while len(levels) > 1 and levels[-2][0] <= levels[-1][0]:
            (_, first), (level, second) = levels[-2:]
            levels[-2:] = [(level + 1, combine(first, second))]

    def total(self, combine: Callable[[Any, Any], Any]) -> Any:
        """All of them combined; there must be one. Nothing is kept."""
        values = [value for _, value in self.levels]
        self.levels = []
        total = values.pop()
        while values:
            total = combine(values.pop(), total)
        return total


class Reduction:
    """How results of chunks become one."""

    #: As the user gave it, for the resume file.
    name: str
    #: Whether partial results stay on the device, for a function that takes device arrays.
    on_device = False

    def __init__(self) -> None:
        self.tree = Tree()

    def reduce(self, result: Any, form: Form) -> Any:
        """The chunk's own part of the work, on the device: along the rows where the result has them."""
        return result

    def part(self, reduced: Any, fetch: Callable[[Any], Any], rows: int) -> Part | None:
        """What is to be combined, on the host; None if the chunk contributes nothing."""
        return [_held(fetch(reduced))]

    def push(self, part: Part | None) -> None:
        """Add a chunk's part."""
        if part is not None:
            self.tree.push(part)

    def merge(self) -> None:
        """Combine what can be combined by now. After an error it may be tried again."""
        self.tree.merge(self.combine)

    def combine(self, first: Part, second: Part) -> Part:
        """Combine neighbours."""
        raise NotImplementedError

    def state(self) -> list[tuple[int, Part]]:
        """What `restore` needs to go on from here."""
        return self.tree.levels

    def restore(self, state: list[tuple[int, Part]]) -> None:
        """Go on from such a state."""
        self.tree.levels = list(state)

    def finish(self) -> Any:
        """The result."""
        raise NotImplementedError


class Sum(Reduction):
    """`"sum"`: as `numpy.sum` along the rows, or of results that have none."""

    name = "sum"

    def reduce(self, result: Any, form: Form) -> Any:
        """Sum along the rows."""
        return result if form.axis is None else _module_of(result).sum(result, axis=form.axis)

    def part(self, reduced: Any, fetch: Callable[[Any], Any], rows: int) -> Part | None:
        """Small integers widen as they do in `numpy.sum`."""
        value = _held(fetch(reduced))
        return [value.astype(numpy.sum(numpy.empty(0, value.dtype)).dtype, copy=False)]

    def combine(self, first: Part, second: Part) -> Part:
        """Add."""
        return [numpy.add(first[0], second[0])]

    def finish(self) -> Any:
        """The sum."""
        return plain(self.tree.total(self.combine)[0])


class Mean(Reduction):
    """`"mean"`: as `numpy.mean` along the rows; results that have none are weighted by the rows of their chunks."""

    name = "mean"

    def reduce(self, result: Any, form: Form) -> Any:
        """The sum along the rows, in the type that a mean has, and how many rows went in."""
        if form.axis is None:
            return result, None
        mean, wide = _mean_types(numpy.dtype(result.dtype))
        total = _module_of(result).sum(result, axis=form.axis, dtype=wide)
        return total, (int(result.shape[form.axis]), mean)

    def part(self, reduced: Any, fetch: Callable[[Any], Any], rows: int) -> Part | None:
        """A sum, its weight, and an empty array of the mean's type."""
        value, counted = reduced
        total = _held(fetch(value))
        if counted is None:
            mean, _ = _mean_types(total.dtype)
            wide = numpy.result_type(total.dtype, numpy.float64)
            return [total.astype(wide) * rows, numpy.asarray(rows), numpy.empty(0, mean)]
        count, mean = counted
        return [total, numpy.asarray(count), numpy.empty(0, mean)]

    def combine(self, first: Part, second: Part) -> Part:
        """Add sums and weights."""
        return [numpy.add(first[0], second[0]), numpy.add(first[1], second[1]), first[2]]

    def finish(self) -> Any:
        """The mean; NaN with NumPy's warning where nothing went in."""
        total, count, kind = self.tree.total(self.combine)
        return plain(numpy.true_divide(total, count).astype(kind.dtype))


class Extreme(Reduction):
    """`"min"` and `"max"`: as in NumPy, so NaN wins. Chunks of which nothing is left contribute nothing."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self._pairwise = {"min": numpy.minimum, "max": numpy.maximum}[name]

    def reduce(self, result: Any, form: Form) -> Any:
        """The extreme along the rows; None if there are none."""
        if form.axis is None:
            return result
        return getattr(_module_of(result), self.name)(result, axis=form.axis) if result.shape[form.axis] else None

    def part(self, reduced: Any, fetch: Callable[[Any], Any], rows: int) -> Part | None:
        """The extreme, if there is one."""
        return None if reduced is None else super().part(reduced, fetch, rows)

    def combine(self, first: Part, second: Part) -> Part:
        """The smaller, or the larger."""
        return [self._pairwise(first[0], second[0])]

    def finish(self) -> Any:
        """The extreme of all."""
        if not self.tree.levels:
            raise ValueError(f'reduce="{self.name}" of no rows at all has no value')
        return plain(self.tree.total(self.combine)[0])


class Concatenate(Reduction):
    """`"concatenate"`: results joined on the host, along their rows; numbers become a one-dimensional array."""

    name = "concatenate"

    def __init__(self, axis: int) -> None:
        super().__init__()
        self._axis = axis
        self._parts: list[tuple[int, Part]] = []

    def reduce(self, result: Any, form: Form) -> Any:
        """Nothing to do on the device."""
        self._axis = self._axis if form.axis is None else form.axis
        return result

    def part(self, reduced: Any, fetch: Callable[[Any], Any], rows: int) -> Part | None:
        """The result, and the axis to join along."""
        value = numpy.atleast_1d(_held(fetch(reduced)))
        return [value, numpy.asarray(min(self._axis, value.ndim - 1))]

    def push(self, part: Part | None) -> None:
        """Append."""
        if part is not None:
            self._parts.append((0, part))

    def state(self) -> list[tuple[int, Part]]:
        """All parts."""
        return self._parts

    def restore(self, state: list[tuple[int, Part]]) -> None:
        """Go on from these."""
        self._parts = list(state)

    def finish(self) -> Any:
        """Join."""
        return numpy.concatenate([part[0] for _, part in self._parts], axis=int(self._parts[-1][1][1]))


class Own(Reduction):
    """An associative function of the user's, called with results of neighbouring chunks as they are."""

    on_device = True

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._function = function
        self.name = fingerprint_of(function)

    def push(self, part: Any) -> None:
        """Add a result."""
        self.tree.push(part)

    def combine(self, first: Any, second: Any) -> Any:
        """Ask the function."""
        return self._function(first, second)

    def finish(self) -> Any:
        """What the function made of all."""
        return self.tree.total(self.combine)


def reduction(reduce: Any, axis: int) -> Reduction | None:
    """The reduction that `reduce` names.

    Raises
    ------
    ValueError
        There is no reduction of that name.
    TypeError
        It is neither a name nor a function.
    """
    if reduce is None:
        return None
    if isinstance(reduce, str):
        made = {"sum": Sum, "mean": Mean}
        if reduce in made:
            return made[reduce]()
        if reduce in ("min", "max"):
            return Extreme(reduce)
        if reduce == "concatenate":
            return Concatenate(axis)
        raise ValueError(f"expected one of {', '.join(NAMES)} or a function of two results, got {reduce!r}")
    if not callable(reduce):
        raise TypeError(f"expected the name of a reduction or a function of two results, got {reduce!r}")
    return Own(reduce)


def _held(value: Any) -> numpy.ndarray[Any, Any]:
    """A copy: what comes from a device lies in USM of the host, which would be kept as long."""
    return numpy.array(value)


def as_array(value: Any) -> numpy.ndarray[Any, Any] | None:
    """A number or an array as an array; None if it is neither."""
    array = numpy.asarray(value)
    return array if array.dtype.kind in "biufc" else None


def _mean_types(dtype: numpy.dtype[Any]) -> tuple[numpy.dtype[Any], numpy.dtype[Any]]:
    """The type of a mean, and of the sum that it is made of."""
    if dtype.kind not in "fc":
        return numpy.dtype(numpy.float64), numpy.dtype(numpy.float64)
    return dtype, numpy.dtype(numpy.float32) if dtype == numpy.float16 else dtype


def _module_of(result: Any) -> Any:
    """dpnp for its arrays, NumPy for everything else."""
    if type(result).__module__.split(".")[0] == "dpnp":
        import dpnp

        return dpnp
    return numpy


def plain(value: Any) -> Any:
    """A scalar of NumPy's in place of an array without dimensions, as NumPy's own reductions answer."""
    return value[()] if isinstance(value, numpy.ndarray) and value.ndim == 0 else value
