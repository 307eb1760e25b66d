"""What the system tells of other processes."""

from __future__ import annotations


def command_of(pid: int) -> str | None:
    """The command line of a process; None if it has none, has ended, or may not be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    return b" ".join(word for word in words if word).decode("utf-8", "replace") or None
