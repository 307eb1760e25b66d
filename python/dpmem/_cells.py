"""A notebook's cells: which one a file of code is, and its lines.

Wherever a line of the program is named, it may be a cell's. Without IPython in the process there are no cells; nothing
here imports it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Runs of cells that have been watched: number, file, when it began (in ticks); oldest first.
runs: list[tuple[int, str, int]] = []
#: Text and file of the cells in IPython's history, by number: to name a file takes a kernel a while.
_named: dict[int, tuple[str, str]] = {}
#: The numbers of all cells by file, and what these were found in; asked for once a block.
_numbers: dict[str, list[int]] = {}
_numbers_of: tuple[Any, ...] = ()


def shell() -> Any | None:
    """The IPython shell of this process, if there is one."""
    module = sys.modules.get("IPython.core.interactiveshell")
    cls = getattr(module, "InteractiveShell", None)
    return cls.instance() if cls is not None and cls.initialized() else None


def file_of(text: str, transformed: str, number: int) -> str:
    """The name under which IPython compiles a cell."""
    running = shell()
    return str(running.compile.get_code_name(text, transformed, number)) if running is not None else ""


def is_cell(file: str) -> bool:
    """Whether a file is a cell's."""
    return _label(file) is not None


def numbers(file: str) -> list[int]:
    """The numbers of all runs of cells with this code: a kernel names equal texts alike."""
    running, label = shell(), _label(file)
    if running is None or label is None:
        return []
    digits = label.removeprefix("In[").removesuffix("]")
    return _by_file(running).get(file) or ([int(digits)] if digits.isdigit() else [])


def newest(file: str) -> int | None:
    """The number of the newest run of a cell's code: of the one under way, if it is running."""
    known = numbers(file)
    return known[-1] if known else None


def number_at(file: str, ticks: int | None) -> int | None:
    """The number of the run of a cell's code that was under way at a time; None where it can't be told."""
    known = numbers(file)
    if len(known) == 1:
        return known[0]
    begun = next((run for run in reversed(runs) if ticks is not None and run[2] <= ticks), None)
    return begun[0] if begun is not None and begun[1] == file else None


def title(file: str, ticks: int | None = None) -> str | None:
    """`cell In[7]`, or None if the file is no cell's."""
    number = number_at(file, ticks)
    if number is not None:
        return f"cell In[{number}]"
    known = numbers(file)
    if not known:
        return None
    first, last = f"In[{known[0]}]", f"In[{known[-1]}]"
    return f"cell {first} or {last}" if len(known) == 2 else f"cell {first} … {last}"


def titles() -> dict[str, str]:
    """The title of every cell, by its file."""
    running = shell()
    files = list(_by_file(running)) if running is not None else []
    return {file: found for file in files if (found := title(file)) is not None}


def place(file: str, line: int, function: str, ticks: int | None = None) -> str:
    """`cell In[7], line 2 in step`; or `file:line in function`."""
    cell = title(file, ticks)
    if cell is None:
        return f"{file}:{line} in {function}"
    return f"{cell}, line {line}" + ("" if function == "<module>" else f" in {function}")


def sources() -> dict[str, list[str]]:
    """The lines of every cell by the name of its file: it can't be read as a file."""
    running = shell()
    cached = getattr(sys.modules.get("linecache"), "cache", {})
    if running is None:
        return {}
    entries = ((name, cached.get(name)) for name in _by_file(running))
    return {name: [line.rstrip("\n") for line in entry[2]] for name, entry in entries if entry and len(entry) > 2}


def line_of(file: str, line: int) -> str:
    """A line of a cell; empty if it is not known."""
    entry = getattr(sys.modules.get("linecache"), "cache", {}).get(file) if is_cell(file) else None
    lines = entry[2] if entry and len(entry) > 2 else []
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _by_file(running: Any) -> dict[str, list[int]]:
    """The numbers of every cell that has been watched or that IPython remembers, in order, by file."""
    global _numbers, _numbers_of
    manager = getattr(running, "history_manager", None)
    texts = getattr(manager, "input_hist_raw", [])
    found_in = (id(running), getattr(manager, "session_number", 0), len(texts), texts[-1:], len(runs))
    if found_in != _numbers_of:
        known = {(name, number) for number, name, _ in runs}
        known.update((name, number) for number, name in _history(texts, getattr(manager, "input_hist_parsed", [])))
        _numbers = {}
        for name, number in sorted(known):
            _numbers.setdefault(name, []).append(number)
        _numbers_of = found_in
    return _numbers


def _history(texts: list[str], transformed: list[str]) -> list[tuple[int, str]]:
    """Number and file of every cell that IPython remembers."""
    for number, (text, code) in enumerate(zip(texts, transformed, strict=False)):
        # `%reset -f in` leaves empty texts in their places.
        if text and _named.get(number, ("",))[0] != text:
            _named[number] = (text, file_of(text, code, number))
    return [(number, file) for number, (_, file) in _named.items() if number < len(texts)]


def _label(file: str) -> str | None:
    """What IPython calls a file of code, `In[7]`; None if it is no cell's."""
    running = shell()
    if running is None or not hasattr(running.compile, "format_code_name"):
        return None
    named = running.compile.format_code_name(file)
    return str(named[1]) if named else None
