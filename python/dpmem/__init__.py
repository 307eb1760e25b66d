"""What every USM allocation of a dpnp or dpctl program did: where, how much, and on which Python line.

Importing it has no effect on the program: nothing is hooked until `start`, `track` or `dpmem run`. What is in
it is loaded when it is first asked for, so that a program under `dpmem run` finds the interpreter as it
would be without. That goes for the native part, too: pytest imports this package for its plugin.

PYTEST_DONT_REWRITE: there are no asserts in here, and pytest warns of plugins that it finds imported already.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpmem._accounting import (
        max_memory_allocated,
        max_memory_reserved,
        memory_allocated,
        memory_reserved,
        memory_snapshot,
        memory_stats,
        memory_summary,
        recording_gap,
        reset_accumulated_memory_stats,
        reset_peak_memory_stats,
    )
    from dpmem._chunks import Chunks, chunks
    from dpmem._devices import DefaultDevice, Device, MemoryInfo, default_device, devices, mem_get_info
    from dpmem._doctor import Check, doctor
    from dpmem._live import Holder, LiveBlock, Synchronized, holders, live, synchronize
    from dpmem._map import map_chunks
    from dpmem._native import __version__
    from dpmem._out_of_memory import last_out_of_memory
    from dpmem._placement import Placement, where
    from dpmem._plan import ChunkPlan, plan_chunks
    from dpmem._pool import (
        disable_pool,
        empty_cache,
        enable_pool,
        on_out_of_memory,
        remove_out_of_memory_callback,
        set_memory_limit,
        set_per_process_memory_fraction,
    )
    from dpmem._tracking import is_tracking, start, stop, track

    OutOfDeviceMemory: type[MemoryError]

#: The module of each name that is in none of those that are looked through.
_ELSEWHERE = {
    "Check": "_doctor",
    "Chunks": "_chunks",
    "ChunkPlan": "_plan",
    "DefaultDevice": "_devices",
    "Device": "_devices",
    "MemoryInfo": "_devices",
    "Placement": "_placement",
    "chunks": "_chunks",
    "default_device": "_devices",
    "devices": "_devices",
    "doctor": "_doctor",
    "map_chunks": "_map",
    "mem_get_info": "_devices",
    "plan_chunks": "_plan",
    "where": "_placement",
}

__all__ = [
    "Check",
    "ChunkPlan",
    "Chunks",
    "DefaultDevice",
    "Device",
    "Holder",
    "LiveBlock",
    "MemoryInfo",
    "OutOfDeviceMemory",
    "Placement",
    "Synchronized",
    "__version__",
    "chunks",
    "default_device",
    "devices",
    "disable_pool",
    "doctor",
    "empty_cache",
    "enable_pool",
    "holders",
    "is_tracking",
    "last_out_of_memory",
    "live",
    "map_chunks",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "on_out_of_memory",
    "plan_chunks",
    "recording_gap",
    "remove_out_of_memory_callback",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_memory_limit",
    "set_per_process_memory_fraction",
    "start",
    "stop",
    "synchronize",
    "track",
    "where",
]


def __getattr__(name: str) -> object:
    if name in ("_native", "__version__"):
        from dpmem._native import __version__

        globals()["__version__"] = __version__
        return globals()[name]
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ELSEWHERE:
        from importlib import import_module

        found: object = getattr(import_module(f"dpmem.{_ELSEWHERE[name]}"), name)
        globals()[name] = found
        return found
    from dpmem import _accounting, _live, _out_of_memory, _pool, _tracking

    value: object
    if name == "OutOfDeviceMemory":
        value = _out_of_memory.error_class()
    else:
        homes = (_tracking, _live, _accounting, _pool, _out_of_memory)
        value = next(getattr(home, name) for home in homes if hasattr(home, name))
    globals()[name] = value
    return value


def load_ipython_extension(shell: object) -> None:
    """What `%load_ext dpmem` calls: make the magics `%dpmem` and `%%dpmem` known."""
    from dpmem import _notebook

    _notebook.load(shell)


def unload_ipython_extension(shell: object) -> None:
    """What `%unload_ext dpmem` calls."""
    from dpmem import _notebook

    _notebook.unload(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
