"""Programs of tests that never end: where each of their threads stands, and whether one stands in dpmem's code.

OpenCL's CPU runtime hangs now and then without dpmem, too ("Hangs" in docs/field-notes.md). A test whose program stands
somewhere, but nowhere in dpmem's code, fails with `RuntimeHang` and is run again (`--only-rerun` in pyproject.toml);
the summary shows the stacks. One that stands in dpmem's code, or whose stacks can't be read, fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import dpmem

#: A wait shorter than this is part of its test, which looks whether a program still runs.
_SHORTEST_S = 20
_STACKS_S = 60

_THREAD = re.compile(r"^Traceback for thread \d+ \((?P<name>.*?)\) \[", re.MULTILINE)
#: One call: a source file, a function, and, if it is native, the library.
_CALL = re.compile(
    r'^ +\((?:C|Python)\) File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<name>.*?)'
    r"(?: \(inlined\))?(?: \((?P<library>/[^()]*)\))?$",
    re.MULTILINE,
)
#: Where a thread sleeps on behalf of the code that called it.
_SYSTEM = re.compile(r"(?:ld-linux|libc|libm|libpthread|libstdc\+\+|libgcc_s|libpython[\d.]+|python[\d.]*)\b")
_STANDARD_LIBRARY = re.compile(r"/lib/python3\.\d+/(?!site-packages/)|<frozen ")
#: The thread of `dpmem run` that sleeps until a signal asks it for the report.
_SIGNAL_THREAD = "dpmem-signal"
_PACKAGE = Path(dpmem.__file__).resolve().parent


@dataclass(frozen=True)
class Call:
    """A call on a thread's stack: of native code with its library, or of Python code with its file and line."""

    name: str
    file: Path
    line: int | None

    def __str__(self) -> str:
        return f"    {self.name} ({self.file.name}{f':{self.line}' if self.line else ''})"

    def waits_for_another(self) -> bool:
        """Whether it is in a system library, the interpreter or its modules: threads sleep there for their callers."""
        return bool(_SYSTEM.match(self.file.name) or _STANDARD_LIBRARY.search(str(self.file)))


@dataclass(frozen=True)
class Thread:
    """A thread's name and its calls, the oldest first."""

    name: str
    calls: tuple[Call, ...]

    def __str__(self) -> str:
        return "\n".join([self.name, *map(str, self.calls)])

    def stands_in_dpmem(self) -> bool:
        """Whether it is in dpmem's code, or asleep in what this code called of the system and of Python."""
        if self.name == _SIGNAL_THREAD and any("sem_wait" in call.name for call in self.calls):
            return False
        files = (call.file for call in reversed(self.calls) if not call.waits_for_another())
        return _PACKAGE in next(files, Path()).resolve().parents


@dataclass(frozen=True)
class Stacks:
    """The threads of a process and of its children; `text` is what went wrong."""

    threads: tuple[Thread, ...]
    text: str = ""

    def __add__(self, other: Stacks) -> Stacks:
        return Stacks(self.threads + other.threads, self.text + other.text)

    def __str__(self) -> str:
        return "\n".join([f"{count} x {thread}" for thread, count in Counter(self.threads).items()] + [self.text])

    def elsewhere(self) -> bool:
        """Whether there are threads, and none of them stands in dpmem's code."""
        return bool(self.threads) and not any(thread.stands_in_dpmem() for thread in self.threads)


def parsed(printed: str) -> Stacks:
    """What pystack printed of a process."""
    before, *rest = _THREAD.split(printed)
    named = zip(rest[::2], rest[1::2], strict=True)
    return Stacks(tuple(Thread(name, tuple(map(_call, _CALL.finditer(calls)))) for name, calls in named), before)


def _call(found: re.Match[str]) -> Call:
    if found["library"]:
        return Call(found["name"], Path(found["library"]), None)
    return Call(found["name"], Path(found["file"]), int(found["line"]))


def stacks(pid: int) -> Stacks:
    """Where the threads of a process and of its children stand."""
    command = [sys.executable, "-m", "pystack", "--no-color", "remote", str(pid), "--native-all"]
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        with _Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                printed, _ = process.communicate(timeout=_STACKS_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
    except (OSError, subprocess.TimeoutExpired) as error:
        return Stacks((), f"no stacks of process {pid}: {error}\n")
    return sum((stacks(int(child)) for child in children), parsed(printed))


class Hang(subprocess.TimeoutExpired):
    """A program took longer than it may, and dpmem may be the cause. The text holds the stacks of its threads."""

    def __init__(self, expired: subprocess.TimeoutExpired, stacks: Stacks):
        super().__init__(expired.cmd, expired.timeout, expired.output, expired.stderr)
        self.stacks = stacks

    def __str__(self) -> str:
        printed = "".join(
            f"\n--- {name}\n{text.decode(errors='replace')[-2000:]}"
            for name, text in (("stdout", self.output), ("stderr", self.stderr))
            if text
        )
        return f"{super().__str__()}{printed}\n--- stacks\n{self.stacks}"


class RuntimeHang(Hang):
    """A program took longer than it may, and no thread of it stands in dpmem's code."""


_Popen = subprocess.Popen


class _Explaining(_Popen):
    def communicate(self, input=None, timeout=None):
        try:
            return super().communicate(input, timeout)
        except subprocess.TimeoutExpired as expired:
            raise self._explained(expired, timeout) from None

    def wait(self, timeout=None):
        try:
            return super().wait(timeout)
        except subprocess.TimeoutExpired as expired:
            raise self._explained(expired, timeout) from None

    def _explained(self, expired, timeout):
        if isinstance(expired, Hang) or timeout < _SHORTEST_S:
            return expired
        where = stacks(self.pid)
        return (RuntimeHang if where.elsewhere() else Hang)(expired, where)


def explain_hangs() -> None:
    """From now on, waits of `subprocess` that run out of time raise `Hang` or `RuntimeHang`."""
    subprocess.Popen = _Explaining
