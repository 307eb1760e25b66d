"""What the native search for holders needs from Python: types, descriptors, samples, where to begin.

May run at the end of a program, so it imports nothing that a bare interpreter hasn't loaded, and takes what belongs to
other modules from where the program has loaded them. Descriptors are taken from the classes that define them, so that
no class of the program is asked for anything.
"""

from __future__ import annotations

import gc
import os
import sys

from dpmem import _cells, _native, _recording, _runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from typing import Any

    from dpmem._native import Held

#: How long a search may take, in seconds.
LIMIT_S = 2.0


def find(blocks: Iterable[tuple[int, int]], *, pending: set[int], asked: int = 0, seconds: float | None = None) -> Held:
    """Find out who holds each block, given as address and bytes.

    `pending` holds the addresses of those whose device has work queued that keeps its arguments; `asked` is the
    address of an array that the caller holds itself.
    """
    return _native.holders_find(
        {
            "vocabulary": _vocabulary(),
            "samples": _samples(),
            "modules": sys.modules,
            "threads": _loaded("threading", "_active"),
            "current_frames": sys._current_frames,
            "universe": gc.get_objects,
            "main_thread": getattr(_loaded("threading", "_main_thread"), "ident", None) or 0,
            "libraries": _recording.library_folders(),
            "own_folder": os.path.dirname(os.path.abspath(__file__)) + os.sep,
            "cells": _cells.titles(),
            "blocks": list(blocks),
            "pending": pending,
            "asked": asked,
            "seconds": LIMIT_S if seconds is None else seconds,
        }
    )


def address_of(x: Any) -> int:
    """Where the memory of an array or memory object begins, past whatever a subclass overrides; 0 if it has none."""
    arrays, memory, ndarray = _array_types(), _runtime.memory_base(), _loaded("numpy", "ndarray")
    for _ in range(64):
        kind = type(x)
        if memory is not None and issubclass(kind, memory):
            return int(vars(memory)["_pointer"].__get__(x))
        usm = next((cls for cls in arrays["usm_ndarray"] if issubclass(kind, cls)), None)
        array = next((cls for cls in arrays["dpnp_array"] if issubclass(kind, cls)), None)
        if usm is not None:
            return int(vars(usm)["_pointer"].__get__(x))
        if array is not None:
            x = vars(array)["get_array"](x)
        elif ndarray is not None and issubclass(kind, ndarray):
            x = vars(ndarray)["base"].__get__(x)
        elif kind is memoryview:
            x = x.obj
        else:
            return 0
    return 0


def _loaded(module: str, name: str) -> Any:
    """What a module holds under a name, if the program has loaded it."""
    loaded = sys.modules.get(module)
    return vars(loaded).get(name) if type(loaded) is type(sys) else None


def _vocabulary() -> dict[str, Any]:
    def generator() -> Generator[None, None, None]:
        yield

    async def coroutine() -> None: ...

    async def asynchronous() -> Any:
        yield

    unstarted = coroutine()
    unstarted.close()
    ndarray = _loaded("numpy", "ndarray")
    arrays = _array_types()
    memory = _runtime.memory_base()
    return {
        "function": type(generator),
        "generators": [type(generator()), type(unstarted), type(asynchronous())],
        "frame": type(sys._getframe()),
        "traceback": _traceback_type(),
        "cell": type(_closed_over(0).__closure__[0]),
        "exception": BaseException,
        "buffers": [memoryview, type(gc.get_referents(memoryview(b""))[0])],
        "deque": _loaded("_collections", "deque"),
        "lru_cache": _loaded("_functools", "_lru_cache_wrapper"),
        "thread_local": _loaded("_thread", "_local"),
        "dpnp": arrays["dpnp_array"],
        "usm": arrays["usm_ndarray"],
        "memory": memory,
        "ndarray": ndarray,
        "member": type(vars(type)["__basicsize__"]),
        "type_mro": vars(type)["__mro__"],
        "type_dict": vars(type)["__dict__"],
        "type_name": vars(type)["__name__"],
        "type_module": vars(type)["__module__"],
        "memory_pointer": memory and vars(memory)["_pointer"],
        "memory_bytes": memory and vars(memory)["nbytes"],
        "usm_pointer": _descriptor(arrays["usm_ndarray"], "_pointer"),
        "usm_bytes": _descriptor(arrays["usm_ndarray"], "nbytes"),
        "ndarray_base": ndarray and vars(ndarray)["base"],
        "ndarray_bytes": ndarray and vars(ndarray)["nbytes"],
        "ndarray_flat": ndarray and vars(ndarray)["flat"],
        "ndarray_dtype": ndarray and vars(ndarray)["dtype"],
        "object_dtype": ndarray and _loaded("numpy", "dtype")(object),
    }


#: Where array classes live, by the version of dpnp.
_ARRAY_MODULES = {
    "dpnp_array": ("dpnp.dpnp_array",),
    "usm_ndarray": ("dpnp.tensor._usmarray", "dpctl.tensor._usmarray"),
}


def _array_types() -> dict[str, list[type]]:
    return {
        name: [found for module in modules if isinstance(found := _loaded(module, name), type)]
        for name, modules in _ARRAY_MODULES.items()
    }


def _descriptor(classes: list[type], name: str) -> Any:
    return next((vars(cls)[name] for cls in classes), None)


def _closed_over(value: object) -> Any:
    def function(first: object, second: object = value, *, third: object = value) -> object:
        return value

    return function


def _traceback_type() -> type:
    try:
        raise RuntimeError
    except RuntimeError as error:
        return type(error.__traceback__)


def _samples() -> dict[str, Any]:
    """Objects whose insides are known."""
    locals_ = [object() for _ in range(3)]

    def suspended(first: object, second: object, third: object) -> Any:
        yield

    generator = suspended(*locals_)
    next(generator)
    function = _closed_over(object())
    return {
        "function": function,
        "code": function.__code__,
        "defaults": function.__defaults__,
        "keyword_defaults": function.__kwdefaults__,
        "closure": function.__closure__,
        "frame": generator.gi_frame,
        "generator": generator,
        "generator_code": suspended.__code__,
        "locals": locals_,
    }
