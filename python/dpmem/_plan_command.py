"""``dpmem plan``: the chunk in which a function can go through data that is larger than the device."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

from dpmem import _icd, _plan, _step
from dpmem._devices_command import put, say


class _Refused(Exception):
    """What the command can't do, as a text."""


def run(*, module: str, function: str, source: str, budget: float, device: str | None, as_json: bool) -> int:
    """Print the plan; the result is the exit code."""
    note = _icd.use_pip_runtime()
    if note is not None:
        say(note)
    try:
        # Standard output is for the plan: what the module and the function print goes beside it.
        with contextlib.redirect_stdout(sys.stderr):
            plan = _plan.plan_chunks(_function(module, function), source, device=device, budget=budget)
    except _Refused as refused:
        say(str(refused))
        return 2
    except Exception as error:
        if _is_of_the_program(error):
            traceback.print_exception(type(error), error, error.__traceback__)
            say(f"{module}:{function} failed on a part of the data")
        elif isinstance(error, (FileNotFoundError, IsADirectoryError)) and error.filename is not None:
            say(f"`{error.filename}`: {error.strerror}; expected a .npy file, or a pattern of files")
        else:
            say(str(error) or type(error).__name__)
        return 2
    put(json.dumps(plan.as_json(), indent=1) + "\n" if as_json else f"{plan}\n")
    return 0


def _function(module: str, name: str) -> Callable[..., Any]:
    sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            traceback.print_exception(type(error), error, error.__traceback__)
            raise _Refused(f"`{module}` can't be imported: {error}") from None
        raise _Refused(f"there is no module `{module}` in the current folder or among those installed") from None
    except (Exception, SystemExit) as error:
        traceback.print_exception(type(error), error, error.__traceback__)
        raise _Refused(f"`{module}` can't be imported: {type(error).__name__}: {error}") from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise _Refused(f"`{module}` has no `{name}`") from None
    if not callable(found):
        raise _Refused(f"`{module}:{name}` is no function, it is {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def _is_of_the_program(error: BaseException) -> bool:
    """Whether the function was running, so that its traceback tells more than the error's text."""
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code is not _step.Step.__call__.__code__:
        entry = entry.tb_next
    return entry is not None and entry.tb_next is not None
