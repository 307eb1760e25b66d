"""What is done with a chunk while it is on the device: the user's function, and the device's part of what follows.

A plan tries the same step that a job then takes, so that nothing a job allocates on the device goes unmeasured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from dpmem import _combine, _fit
from dpmem._form import Form


class Step:
    """Calls the function; `form` is None while it is not known yet."""

    def __init__(
        self, function: Callable[..., Any], reduction: _combine.Reduction | None, writes: bool, axis: int
    ) -> None:
        self.form: Form | None = None
        self._function, self._reduction, self._axis = function, reduction, axis
        self._fetches = writes or isinstance(reduction, _combine.Concatenate)

    def __call__(self, parts: tuple[Any, ...]) -> tuple[Any, Any]:
        """The result, and what the reduction makes of it on the device."""
        result = self._function(*parts)
        if self.form is not None:
            self.form.check(result, int(parts[0].shape[self._axis]))
        if self._fetches:
            result = _in_one_piece(result)
        if self._reduction is None:
            return result, None
        if self._reduction.on_device:
            return result, _own(result)
        return result, None if self.form is None else self._reduction.reduce(result, self.form)


def fetch(value: Any) -> Any:
    """An array of the device on the host; anything else as it is."""
    if not is_on_device(value):
        return value
    import dpnp

    return dpnp.asnumpy(value)


def send(value: Any, queue: Any) -> Any:
    """An array of the host on the device."""
    import dpnp

    return dpnp.asarray(value, sycl_queue=queue)


def is_on_device(value: Any) -> bool:
    """Whether it is an array in USM."""
    return hasattr(type(value), "__sycl_usm_array_interface__")


def _in_one_piece(result: Any) -> Any:
    """What is to be fetched lies in C order: a view would bring all of the array that it is a view of."""
    if not is_on_device(result) or result.flags.c_contiguous:
        return result
    import dpnp

    return dpnp.ascontiguousarray(result)


def _own(result: Any) -> Any:
    """A result that outlives its chunk: a copy, as it may be the chunk, or an array that the function uses again."""
    if not is_on_device(result):
        return result.copy() if isinstance(result, numpy.ndarray) else result
    import dpnp

    return dpnp.copy(dpnp.asarray(result))


def settled(result: Any, queue: Any) -> None:
    """Wait until nothing that was queued for a chunk needs it any more."""
    _fit.settle(queue)
    if is_on_device(result) and result.sycl_queue != queue:
        _fit.settle(result.sycl_queue)


def brought(value: Any) -> Any:
    """A result for the user: an array of the device as one of NumPy's with memory of its own, or as a scalar."""
    if not is_on_device(value):
        return value
    array = numpy.array(fetch(value))
    return array[()] if array.ndim == 0 else array
