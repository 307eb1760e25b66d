"""The limits of a test: what its marks say, and what that means on a device."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dpmem import _native


class BadMark(Exception):
    """A mark says nothing that could be enforced."""


@dataclass(frozen=True)
class Limit:
    """A limit as its mark gives it: bytes, or a share of the device's capacity."""

    text: str
    bytes: int | None
    share: float | None

    def on(self, device: str | None) -> int | None:
        """The bytes that it means on a device; None if it is a share of a capacity that nobody knows."""
        if self.bytes is not None or self.share is None:
            return self.bytes
        capacity = _native.device_room(device)[0] if device else None
        return None if capacity is None else int(capacity * self.share)

    def shown(self, meaning: int) -> str:
        """How a message gives it: as it was written, and in the units of the other numbers."""
        size = _native.human_size(meaning)
        return size if size.replace(" ", "") == self.text.replace(" ", "") else f"{self.text} ({size})"


def of_mark(item: pytest.Item, name: str) -> Limit | None:
    """The limit that the closest mark of that name sets; None without one. Raises BadMark."""
    mark = item.get_closest_marker(name)
    if mark is None:
        return None
    if len(mark.args) != 1 or mark.kwargs:
        given = ", ".join([*map(repr, mark.args), *(f"{key}={value!r}" for key, value in mark.kwargs.items())])
        raise BadMark(f"`{name}`: expected one size, as in {name}('64MB'), got ({given})")
    (size,) = mark.args
    if isinstance(size, bool) or not isinstance(size, (int, str)) or (isinstance(size, int) and size < 0):
        raise BadMark(f"`{name}`: expected a size as a number of bytes or a text such as '64MB', got {size!r}")
    if isinstance(size, int):
        return Limit(f"{size} B", size, None)
    try:
        return Limit(size, *_native.size_parse(size))
    except ValueError as error:
        raise BadMark(f"`{name}`: {error}") from None
