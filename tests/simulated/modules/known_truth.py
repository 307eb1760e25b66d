"""For programs that know what must come out: compares, collects what differs, and prints that as JSON at the end."""

from __future__ import annotations

import atexit
import json
from typing import Any

from dpctl.utils import SequentialOrderManager

_differing: list[str] = []


def expect(what: str, got: Any, expected: Any) -> None:
    if got != expected:
        _differing.append(f"{what}: {got!r}, expected {expected!r}")


def settle() -> None:
    """Wait until dpctl lets go of what finished work has used."""
    for manager in SequentialOrderManager._map.get().values():
        manager.wait()


atexit.register(lambda: print(json.dumps(_differing)))
