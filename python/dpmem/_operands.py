"""The operands of operations that cast one of them.

The runtime shows bytes, not dtypes. So when a line makes the library cast an operand for the first time, its frames are
looked at once, on the main thread, while the operation is under way. Nothing of the program runs for that: only objects
of exactly the library's own types are asked for their dtype.
"""

from __future__ import annotations

import sys

from dpmem import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

#: How many frames above the cast an operation is looked for.
_DEPTH = 40
#: How many lines are remembered.
_MOST = 1000

_seen: dict[tuple[str, int], dict[str, object]] = {}


def watch() -> None:
    """Look at operands from now on."""
    _native.witness_casts(_look)


def promotions() -> list[dict[str, object]]:
    """What was seen: file, line, operation and both operands, once for each line."""
    return list(_seen.values())


def forget() -> None:
    """Begin anew."""
    _seen.clear()


def _look() -> None:
    if len(_seen) >= _MOST:
        return
    call = _operation(sys._getframe().f_back)
    place = next((frame for frame in _native.frames_here(128) if not frame[3]), None)
    if call is None or place is None:
        return
    values = call.f_locals
    # dpctl and dpnp name the two operands differently.
    names = ("x1", "x2") if "x1" in values else ("o1", "o2")
    operands = [_operand(values.get(name)) for name in names]
    operation = getattr(values.get("self"), "name_", None)
    if not isinstance(operation, str) or None in operands:
        return
    file, line = place[0], place[1]
    _seen[(file, line)] = {"file": file, "line": line, "operation": operation, "operands": operands}


def _operation(frame: FrameType | None) -> FrameType | None:
    """The outermost frame of the elementwise function that is under way."""
    found = None
    for _ in range(_DEPTH):
        if frame is None:
            break
        code = frame.f_code
        if code.co_name == "__call__" and code.co_filename.endswith("elementwise_common.py"):
            if "x2" in code.co_varnames or "o2" in code.co_varnames:
                found = frame
        elif found is not None:
            break
        frame = frame.f_back
    return found


def _operand(value: Any) -> dict[str, object] | None:
    cls = type(value)
    name = f"{cls.__module__}.{cls.__qualname__}"
    if cls in (int, float, complex, bool):
        return {"type_name": cls.__name__, "dtype": None, "dimensions": None}
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if cls in _array_types() or cls is numpy.ndarray or (cls.__module__ == "numpy" and issubclass(cls, numpy.generic)):
        return {"type_name": name, "dtype": str(value.dtype), "dimensions": int(value.ndim)}
    return None


def _array_types() -> tuple[type, ...]:
    found = (
        getattr(sys.modules.get(module), name, None)
        for module, name in (
            ("dpnp", "ndarray"),
            ("dpnp.tensor", "usm_ndarray"),
            ("dpctl.tensor", "usm_ndarray"),
        )
    )
    return tuple(cls for cls in found if isinstance(cls, type))
