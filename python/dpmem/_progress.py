"""How far a job is: tqdm on a terminal, a function of the user's, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Progress:
    """Told of each finished chunk."""

    def __init__(self, wanted: bool | Callable[[int, int], object] | None, done: int, total: int) -> None:
        self._done, self._total = done, total
        self._call: Callable[[int, int], object] | None = None
        self._bar: Any = None
        if callable(wanted):
            self._call = wanted
        elif wanted or (wanted is None and _on_terminal()):
            self._bar = _bar(done, total, needed=bool(wanted))

    def advance(self, rows: int) -> None:
        """So many rows more are done."""
        self._done += rows
        if self._call is not None:
            self._call(self._done, self._total)
        elif self._bar is not None:
            self._bar.update(rows)

    def close(self) -> None:
        """The job has ended, well or not."""
        if self._bar is not None:
            self._bar.close()


def _on_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _bar(done: int, total: int, needed: bool) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if needed:
            raise ImportError("progress=True takes tqdm: pip install tqdm, or give a function") from None
        return None
    return tqdm(total=total, initial=done, unit="row", unit_scale=True, desc="dpmem.map_chunks")
