"""What a function makes of a chunk: rows of its own, one result of a fixed shape, or a number of rows that varies.

Found out by calling it on two parts of different size, so that no coincidence of sizes is taken for a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy


@dataclass(frozen=True)
class Form:
    """The shape that results have."""

    #: "rows": as many as the chunk has; "varying": rows, how many depends on the data; "fixed": none.
    kind: str
    #: The axis of the result along which its rows lie; None if it is fixed.
    axis: int | None
    #: The shape of one result, 0 at the axis of its rows.
    shape: tuple[int, ...]
    dtype: numpy.dtype[Any]

    def whole(self, rows: int) -> tuple[int, ...]:
        """The shape of the results of all chunks together; only where there are as many rows as in the chunks."""
        return _with(self.shape, self.axis, rows)

    def check(self, result: Any, rows: int) -> None:
        """Raise a ValueError if a result of a chunk of so many rows is not as it should be."""
        shape, dtype = shape_of(result), dtype_of(result)
        there = _with(shape, self.axis, 0) if self.axis is not None and len(shape) == len(self.shape) else shape
        if there != self.shape or (self.kind == "rows" and self.axis is not None and shape[self.axis] != rows):
            extents = [str(extent) for extent in self.shape]
            if self.axis is not None:
                extents[self.axis] = str(rows) if self.kind == "rows" else "*"
            expected = f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"
            raise ValueError(f"expected a result of shape {expected} as from the parts tried before, got {shape}")
        if dtype != self.dtype:
            raise ValueError(f"expected results of type {self.dtype} as from the parts tried before, got {dtype}")


def form_of(first: Any, first_rows: int, second: Any, second_rows: int, axis: int) -> Form:
    """What two results of two chunks of different size have in common.

    Raises
    ------
    ValueError
        They have nothing in common, or grow in more than one direction, so that the function can't be applied to
        chunks.
    """
    a, b, dtype = shape_of(first), shape_of(second), dtype_of(second)
    if len(a) != len(b):
        raise ValueError(
            f"the function can't go in chunks: {first_rows} rows give {len(a)} dimensions, {second_rows} {len(b)}"
        )
    changed = [place for place, (m, n) in enumerate(zip(a, b, strict=True)) if m != n]
    if len(changed) > 1:
        raise ValueError(
            f"the function can't go in chunks: its result grows in {len(changed)} directions "
            f"({first_rows} rows give {a}, {second_rows} rows {b})"
        )
    if changed:
        place = changed[0]
        kind = "rows" if (a[place], b[place]) == (first_rows, second_rows) else "varying"
        return Form(kind, place, _with(b, place, 0), dtype)
    if axis < len(b) and b[axis] == 0:
        # Nothing was selected in either part: elsewhere there may be something.
        return Form("varying", axis, b, dtype)
    return Form("fixed", None, b, dtype)


def shape_of(result: Any) -> tuple[int, ...]:
    """The shape of an array, () of a number.

    Raises
    ------
    TypeError
        There are several results.
    """
    if isinstance(result, (list, tuple)):
        raise TypeError(
            f"expected an array or a number as result of a chunk, got a {type(result).__name__}: "
            "put what it holds into one array"
        )
    shape = getattr(result, "shape", None)
    return tuple(map(int, shape)) if shape is not None else numpy.shape(result)


def dtype_of(result: Any) -> numpy.dtype[Any]:
    """The type of an array's elements, or of a number.

    Raises
    ------
    TypeError
        It is neither.
    """
    dtype = numpy.dtype(getattr(result, "dtype", None) or numpy.asarray(result).dtype)
    if dtype.kind not in "biufc":
        raise TypeError(f"expected an array or a number as result of a chunk, got {type(result).__name__}")
    return dtype


def _with(shape: tuple[int, ...], axis: int | None, extent: int) -> tuple[int, ...]:
    return tuple(extent if place == axis else there for place, there in enumerate(shape))
