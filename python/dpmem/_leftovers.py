"""What a notebook keeps of cells that have run, and letting go of it.

IPython keeps every shown result in `Out`, `_N`, `_`, `__` and `___`, twice: in the user's namespace and in
`user_ns_hidden`; `%reset -f out` leaves the second set. The last traceback is kept by `sys`, by the printers of
tracebacks, by the debugger, and as part of the last cell's result. Only what IPython itself has put there is touched: a
variable of the user's that happens to be called `_` or `_5` stays.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from typing import Any

_UNDERS = ("_", "__", "___")
_OF_SYS = ("last_exc", "last_value", "last_traceback", "last_type")
_OF_PRINTERS = ("tb", "etype", "evalue", "last_syntax_error")
_MISSING = object()


@dataclass
class LetGo:
    """What there was: shown results, and whether a traceback."""

    results: int
    traceback: bool

    def __str__(self) -> str:
        parts = [f"{self.results} shown result{'' if self.results == 1 else 's'}"] if self.results else []
        parts += ["the last traceback"] if self.traceback else []
        return " and ".join(parts) or "nothing: no result was kept, and no traceback"


def let_go(shell: Any) -> LetGo:
    """Let go of results and of the last traceback, and collect the garbage that is left of them."""
    kept = _forget_results(shell)
    kept.extend(_forget_last(shell))
    count = len({id(value) for value in kept})
    kept.clear()
    traceback = _forget_traceback(shell)
    gc.collect()
    return LetGo(count, traceback)


def _forget_results(shell: Any) -> list[Any]:
    """Take out `Out` and the numbered names; what they held."""
    names, hidden = shell.user_ns, shell.user_ns_hidden
    outputs = names.get("_oh")
    kept = dict(outputs.items()) if isinstance(outputs, dict) else {}
    numbered = {f"_{number}": value for number, value in kept.items()}
    # Names that have left `Out` stay hidden: it was full, or somebody has cleared it.
    numbered.update((name, value) for name, value in hidden.items() if name[:1] == "_" and name[1:].isdigit())
    for name, value in numbered.items():
        hidden.pop(name, None)
        if names.get(name, _MISSING) is value:
            del names[name]
    if kept:
        outputs.clear()
    return list(numbered.values())


def _forget_last(shell: Any) -> list[Any]:
    """Empty `_`, `__` and `___` wherever IPython has put them; what they held."""
    names, hidden, hook = shell.user_ns, shell.user_ns_hidden, shell.displayhook
    kept: list[Any] = []
    for name in _UNDERS:
        own = [hidden.get(name, _MISSING), getattr(hook, name, _MISSING)]
        own = [value for value in own if value is not _MISSING]
        if any(names.get(name, _MISSING) is value for value in own):
            names[name] = ""
        if name in hidden:
            hidden[name] = ""
        setattr(hook, name, "")
        kept.extend(value for value in own if not isinstance(value, str) or value)
    result = getattr(shell, "last_execution_result", None)
    if result is not None:
        kept.extend([] if result.result is None else [result.result])
    return kept


def _forget_traceback(shell: Any) -> bool:
    """Take the last exception from everybody who keeps it; whether there was one."""
    found = False
    for name in _OF_SYS:
        found = sys.__dict__.pop(name, None) is not None or found
    for printer in (getattr(shell, "InteractiveTB", None), getattr(shell, "SyntaxTB", None)):
        for name in _OF_PRINTERS:
            if getattr(printer, name, None) is not None:
                setattr(printer, name, None)
                found = True
        if getattr(printer, "pdb", None) is not None:
            # IPython makes another debugger when it needs one.
            setattr(printer, "pdb", None)  # noqa: B010
    if getattr(shell, "last_execution_result", None) is not None:
        shell.last_execution_result = None
    return found
