"""Whether what a job writes is what it still has to read."""

from __future__ import annotations

import os
from typing import Any

import numpy


def check(source: Any, out: Any, once: bool) -> None:
    """Raise a ValueError if rows could be read after they were overwritten.

    A NumPy array may be written over itself, row by row, if no chunk can be done twice (`once`) after it was written.
    """
    if not isinstance(out, numpy.ndarray):
        return
    for array in _leaves(source):
        if not _overlaps(array, out) or (once and _is_same(array, out)):
            continue
        hint = " with reduce= or resume=" if _is_same(array, out) else ", shifted or in another order"
        raise ValueError(f"out= is memory of the source{hint}: rows would be read after they were written; use another")


def _leaves(source: Any) -> list[Any]:
    if isinstance(source, (list, tuple)):
        return [leaf for each in source for leaf in _leaves(each)]
    return [source]


def _overlaps(array: Any, out: Any) -> bool:
    if isinstance(array, numpy.ndarray):
        try:
            if numpy.shares_memory(array, out, max_work=1 << 16):  # type: ignore[arg-type]
                return True
        except numpy.exceptions.TooHardError:
            return True
        array = getattr(array, "filename", None)
    written = getattr(out, "filename", None)
    if written is None or not isinstance(array, (str, os.PathLike)):
        return False
    # Two maps of one file have different addresses.
    try:
        return os.path.samefile(array, written)
    except OSError:
        return False


def _is_same(array: Any, out: Any) -> bool:
    if not isinstance(array, numpy.ndarray):
        return False
    first, second = array.__array_interface__, out.__array_interface__
    return (first["data"][0], array.shape, array.strides, array.dtype) == (
        second["data"][0],
        out.shape,
        out.strides,
        out.dtype,
    )
