"""Tries devices out: allocates, computes and copies back, in a child process for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmem import _probe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dpmem._devices import Device


def try_each(devices: Iterable[Device], *, limit_s: float = 10.0) -> dict[str, str]:
    """Compute on each device; "ok" or why not, by filter string.

    The children run side by side, so that one broken driver costs no more than `limit_s`.
    """
    names = [device.filter for device in devices if device.filter is not None]
    children = {name: _probe.Child(["dpnp", f"kernel:{name}"], limit_s=limit_s) for name in names}
    outcomes = {}
    for name, child in children.items():
        answer = child.finish()
        outcomes[name] = next((f"{stage}: {error}" for stage, error in answer.errors.items()), "ok")
    return outcomes
