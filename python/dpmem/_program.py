"""Makes this interpreter look as if ``python`` had been started with the program, and runs it.

Knows nothing of recording. What CPython's own start-up sets is set here in the same order: ``sys.argv``,
``sys.path[0]``, a fresh ``__main__``. The main module itself is run by native code, so that no frame of ours
is in a traceback.
"""

from __future__ import annotations

import builtins
import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader, SourcelessFileLoader

from dpmem import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType


class CannotStart(Exception):
    """The program cannot be started; the text says why, ``code`` is the exit code."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class Program:
    """A program ready to run: calling ``function`` with ``arguments`` runs it to its end."""

    def __init__(
        self,
        function: Callable[..., _native.ProgramEnd],
        *arguments: object,
        script: dict[str, object] | None = None,
    ) -> None:
        self.function = function
        self.arguments = arguments
        self._script = script

    def tidy(self, end: _native.ProgramEnd) -> None:
        """Remove from a script's ``__main__`` what CPython removes once it ran."""
        if self._script is not None and not end.by_system_exit:
            self._script.pop("__file__", None)
            self._script.pop("__cached__", None)


def prepare(kind: str, target: str, arguments: Sequence[str]) -> Program:
    """Set the interpreter up for a program.

    ``kind`` is "script", "module" or "code". Raises CannotStart, having changed nothing, when there is no
    such script.
    """
    if kind == "code":
        return _prepare_code(target, arguments)
    if kind == "module":
        return _prepare_module(target, arguments)
    if target == "-":
        return _prepare_standard_input(arguments)
    return _prepare_script(target, arguments)


def prepare_spawned(code: str) -> Program:
    """Like ``prepare`` for source text in the place of the ``-c`` that this interpreter was started with."""
    return Program(_native.program_run_source, code, "<string>", sys.modules["__main__"].__dict__)


def _prepare_code(code: str, arguments: Sequence[str]) -> Program:
    sys.argv = ["-c", *arguments]
    _replace_first_path("")
    namespace = _fresh_main(builtins.__loader__)
    if sys.version_info >= (3, 14):
        code = _dedented(code)
    # Python's -c ends the text with a newline, and from 3.13 on keeps it for tracebacks.
    code += "\n"
    lines = _keep_lines(code) if sys.version_info >= (3, 13) else None
    sys.audit("cpython.run_command", code)
    return Program(_native.program_run_source, code, "<string>", namespace, lines)


def _prepare_module(name: str, arguments: Sequence[str]) -> Program:
    sys.argv = ["-m", *arguments]
    _replace_first_path(_working_folder())
    _fresh_main(builtins.__loader__)
    sys.audit("cpython.run_module", name)
    return Program(_native.program_run_module, name, True)


def _prepare_standard_input(arguments: Sequence[str]) -> Program:
    sys.argv = ["-", *arguments]
    _replace_first_path("")
    namespace = _fresh_main(builtins.__loader__, file="<stdin>")
    sys.audit("cpython.run_stdin")
    source = sys.stdin.buffer.read() if sys.stdin is not None else b""
    return Program(_native.program_run_source, source, "<stdin>", namespace, script=namespace)


def _prepare_script(script: str, arguments: Sequence[str]) -> Program:
    path = script if os.path.isabs(script) else os.path.join(_working_folder(), script)
    if _importer(path) is not None:
        return _prepare_folder(script, path, arguments)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise CannotStart(f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}", 2) from None

    sys.argv = [script, *arguments]
    _replace_first_path(os.path.dirname(os.path.realpath(script)))
    compiled = path.endswith(".pyc") or data[:4] == MAGIC_NUMBER
    loader = (SourcelessFileLoader if compiled else SourceFileLoader)("__main__", path)
    namespace = _fresh_main(loader, file=path)
    sys.audit("cpython.run_file", path)
    if compiled:
        load = marshal.loads if data[:4] == MAGIC_NUMBER else None
        return Program(_native.program_run_code, load, data[16:], namespace, script=namespace)
    return Program(_native.program_run_source, data, path, namespace, script=namespace)


def _prepare_folder(script: str, path: str, arguments: Sequence[str]) -> Program:
    sys.argv = [script, *arguments]
    if _has_first_path():
        sys.path[0] = path
    else:  # CPython does this even where the user asked for a safe path
        sys.path.insert(0, path)
    _fresh_main(builtins.__loader__)
    return Program(_native.program_run_module, "__main__", False)


def _fresh_main(loader: object, file: str | None = None) -> dict[str, object]:
    """Put an empty ``__main__`` in place, as the interpreter makes it; the result is its namespace."""
    old: ModuleType = sys.modules["__main__"]
    new = type(sys)("__main__")
    namespace = new.__dict__
    namespace["__loader__"] = loader
    if "__annotations__" in vars(old):
        namespace["__annotations__"] = {}
    namespace["__builtins__"] = builtins
    if file is not None:
        namespace["__file__"] = file
        namespace["__cached__"] = None
    sys.modules["__main__"] = new
    return namespace


def _importer(path: str) -> object | None:
    """What can import from ``path``, if that is a folder or a zip file."""
    if path in sys.path_importer_cache:
        return sys.path_importer_cache[path]
    for hook in sys.path_hooks:
        try:
            importer: object = hook(path)
        except ImportError:
            continue
        sys.path_importer_cache[path] = importer  # type: ignore[assignment]
        return importer
    return None


def _has_first_path() -> bool:
    """Whether the interpreter put a folder of its own choice at ``sys.path[0]``."""
    if sys.version_info >= (3, 11):
        return not sys.flags.safe_path
    return not sys.flags.isolated


def _replace_first_path(folder: str) -> None:
    if _has_first_path():
        sys.path[0] = folder


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _keep_lines(code: str) -> Callable[[CodeType], None]:
    def keep(compiled: CodeType) -> None:
        import linecache

        key = compiled if hasattr(linecache, "_code_key") else "<string>"
        linecache._register_code(key, code, "<string>")  # type: ignore[attr-defined]

    return keep


def _dedented(code: str) -> str:
    lines = code.split("\n")
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip(" \t")]
    margin = min(indents, key=len, default="")
    while not all(indent.startswith(margin) for indent in indents):
        margin = margin[:-1]
    return "\n".join(line[len(margin) :] if line.strip(" \t") else line.strip(" \t") for line in lines)
