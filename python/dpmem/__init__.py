"""What every USM allocation of a dpnp or dpctl program did: where, how much, and on which Python line.

Importing it has no effect on the program: nothing is hooked until :func:`start`, :class:`track` or ``dpmem run``.
"""

from dpmem._accounting import (
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from dpmem._native import __version__
from dpmem._tracking import is_tracking, start, stop, track

__all__ = [
    "__version__",
    "is_tracking",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "start",
    "stop",
    "track",
]
