"""Children that ``multiprocessing`` spawns record themselves.

A spawned child is a fresh interpreter, started with a ``-c`` text that `multiprocessing.spawn` makes. Once
the program imports that module, the text is wrapped so that the child starts a recording around it. Nothing
is set in the environment, and nothing is imported for a program that does not use multiprocessing. Children
of a fork server are not reached.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODULE = "multiprocessing.spawn"

# In a child that cannot import dpmem the original text must run as it is.
_CHILD = """\
try:
    from dpmem._spawn import main
except ImportError:
    main = lambda code, **options: exec(code, globals())
main({code!r}, **{options!r})
"""


def watch(*, stack_depth: int, json: str | None, pool: bool = False, limit: str | None = None) -> None:
    """Have children spawned from now on record themselves, with reports at ``json`` plus their process id."""
    options: dict[str, object] = {"stack_depth": stack_depth, "json": json, "pool": pool, "limit": limit}
    sys.meta_path.insert(0, _Watcher(options))


def main(code: str, *, stack_depth: int, json: str | None, pool: bool = False, limit: str | None = None) -> None:
    """Run ``code`` in a spawned child and report; does not return."""
    from dpmem import _command, _native, _program

    if json is not None:
        json = _native.cli_spawned_path(json, os.getpid())
    options = _command.Options(json=json, stack_depth=stack_depth, summary=False, fail_on=[], pool=pool, limit=limit)
    options.target, options.arguments = code, sys.argv[1:]
    watch(stack_depth=stack_depth, json=json, pool=pool, limit=limit)
    run = _command.Run(options, _program.prepare_spawned(code))
    run.arm()
    raise SystemExit(run.ended(run.program.function(*run.program.arguments)))


class _Watcher:
    """Finds nothing itself; wraps `multiprocessing.spawn` when someone else has found it, and is gone."""

    def __init__(self, options: dict[str, object]) -> None:
        self._options = options

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Part of the protocol of `sys.meta_path`."""
        if name != _MODULE or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self._options)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """Loads a module through its own loader, puts that back, and wraps one function."""

    def __init__(self, loader: Any, options: dict[str, object]) -> None:
        self._loader = loader
        self._options = options

    def create_module(self, spec: Any) -> Any:
        """Part of the protocol of loaders."""
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        """Part of the protocol of loaders."""
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        original = getattr(module, "get_command_line", None)
        if callable(original):
            module.get_command_line = _recording_command_line(original, self._options)


def _recording_command_line(original: Any, options: dict[str, object]) -> Any:
    def get_command_line(**keywords: Any) -> list[str]:
        words: list[str] = original(**keywords)
        try:
            place = words.index("-c") + 1
            words[place] = _CHILD.format(code=words[place], options=options)
        except (ValueError, IndexError):
            pass  # another shape than we know: the child runs unrecorded
        return words

    get_command_line.__doc__ = original.__doc__
    return get_command_line
