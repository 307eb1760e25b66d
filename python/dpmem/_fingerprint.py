"""What tells a function from another in a later process, as far as that can be told."""

from __future__ import annotations

import dis
import functools
import zlib
from collections.abc import Callable
from typing import Any

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def fingerprint_of(function: Callable[..., object]) -> str:
    """A function's name and what it does, so that a resumed job isn't finished by another function.

    What counts is the code, default values, and numbers and texts that it closes over, but for those that it changes
    itself. Global variables and other objects are not looked at: they differ from process to process for other reasons.
    """
    return _told(function, frozenset())


def _told(function: Any, within: frozenset[int]) -> str:
    # Functions may close over themselves.
    within |= {id(function)}
    if isinstance(function, functools.partial):
        bound = _plain((function.args, *sorted(function.keywords.items())), within)
        return f"partial of {_told(function.func, within)} {zlib.crc32(repr(bound).encode()):08x}"
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    if code is None:
        # Those of dpnp and NumPy are objects of few types.
        is_known = type(function).__module__.partition(".")[0] in ("dpnp", "numpy")
        if is_known:
            return repr(function)
        call = type(function).__call__
        return f"{name} {_told(call, within)}" if hasattr(call, "__code__") else str(name)
    parts = [code.co_code, repr(code.co_names).encode(), repr([_constant(each) for each in code.co_consts]).encode()]
    parts.append(repr(_bound(function, code, within)).encode())
    return f"{name} {zlib.crc32(b'|'.join(parts)):08x}"


def _bound(function: Any, code: Any, within: frozenset[int]) -> list[Any]:
    """Values that belong to this function, not to its code."""
    changed = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_DEREF"}
    closed: list[Any] = []
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False):
        try:
            closed.append(None if name in changed else _plain(cell.cell_contents, within))
        except ValueError:  # not bound yet
            closed.append(None)
    named = getattr(function, "__kwdefaults__", None) or {}
    return [closed, _plain(getattr(function, "__defaults__", None), within), _plain((*sorted(named.items()),), within)]


def _plain(value: Any, within: frozenset[int]) -> Any:
    """A value as it reads the same in another process; of others only the type, of functions the fingerprint.

    Lists and the like are not looked into: what they hold may change while the job runs.
    """
    if isinstance(value, tuple):
        return [_plain(each, within) for each in value]
    if type(value) in _PLAIN:
        return value
    is_new_function = callable(value) and not isinstance(value, type) and id(value) not in within
    return _told(value, within) if is_new_function else type(value).__qualname__


def _constant(value: Any) -> Any:
    """A constant as it reads the same in another process; a code object's own repr holds its address."""
    if hasattr(value, "co_code"):
        return value.co_code, value.co_names, [_constant(each) for each in value.co_consts]
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value
