"""What the hook can't tell of an operation: the dtypes of its operands, and the name of an elementwise function.

The runtime shows bytes, and frames that say `__call__`. So when a line casts an operand, or calls an elementwise
function by its own name, for the first time, its frames are looked at once, on the main thread, while the operation is
under way. Nothing of the program runs for that: only objects of the library's own types are asked for their dtype.
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

#: By place, operation and dtypes of operands.
_promotions: dict[tuple[object, ...], dict[str, object]] = {}
#: Place and name, in the order in which they were seen.
_operations: dict[tuple[str, int, str], None] = {}


def watch() -> None:
    """Look at operations from now on."""
    _native.witness_operations(_look)


def promotions() -> list[dict[str, object]]:
    """Operations of which both operands were seen: file, line, operation and operands, different ones only."""
    return list(_promotions.values())


def operations() -> list[tuple[str, int, str]]:
    """File, line and name of elementwise functions that were called by their own names."""
    return list(_operations)


def forget() -> None:
    """Begin anew."""
    _promotions.clear()
    _operations.clear()


def _look() -> None:
    if len(_promotions) + len(_operations) >= _MOST:
        return
    call = _operation(sys._getframe().f_back)
    place = next((frame for frame in _native.frames_here(128) if not frame[3]), None)
    if call is None or place is None:
        return
    values = call.f_locals
    operation = getattr(values.get("self"), "name_", None)
    if not isinstance(operation, str):
        return
    file, line = place[0], place[1]
    _operations[(file, line, operation)] = None
    if values.get("dtype") is not None or values.get("out") is not None:
        return  # the program has said what it wants
    # dpctl and dpnp name the two operands differently.
    names = ("x1", "x2") if "x1" in values else ("o1", "o2")
    operands = [_operand(values.get(name)) for name in names]
    if None in operands:
        return
    dtypes = [(operand["type_name"], operand["dtype"], operand["dimensions"]) for operand in operands if operand]
    _promotions.setdefault(
        (file, line, operation, *dtypes),
        {"file": file, "line": line, "operation": operation, "operands": operands},
    )


def _operation(frame: FrameType | None) -> FrameType | None:
    """The outermost frame of the elementwise function that is under way; one that names both operands, if there is."""
    found = None
    for _ in range(_DEPTH):
        if frame is None:
            break
        code = frame.f_code
        if code.co_name == "__call__" and code.co_filename.endswith("elementwise_common.py"):
            if found is None or not {"x2", "o2"}.isdisjoint(code.co_varnames):
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
