"""``dpmem doctor``: the checks on a screen or as JSON, and the archive for a bug report."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

from dpmem import _devices_command, _doctor, _native

#: Packages whose versions say something about devices; others are nobody's business.
_PACKAGES = re.compile(
    r"(dpnp|dpctl|dpmem|intel[-_].*|onemkl.*|mkl.*|tbb|umf|tcmlib|dpcpp.*|numpy|numba.*|scikit-learn.*)", re.I
)
_FILES = ("/etc/os-release", "/proc/version", "/proc/meminfo", "/proc/self/cgroup")
_MAX_FILE_BYTES = 16384


def run(*, as_json: bool, only: list[str], skip: list[str], bundle: str | None) -> int:
    """Print the checks; the result is the exit code."""
    try:
        checks = _doctor.doctor(only=only, skip=skip)
    except ValueError as problem:
        _devices_command.say(str(problem))
        return 2
    if bundle is not None:
        try:
            write_bundle(bundle, checks)
        except OSError as problem:
            _devices_command.say(f"cannot write `{bundle}`: {problem.strerror or problem}")
            return 2
        _devices_command.say(f"wrote {bundle}")
    if as_json:
        _devices_command.put(json.dumps([vars(check) for check in checks], indent=1) + "\n")
    else:
        _devices_command.put(_text(checks))
    return 1 if any(check.status == "failed" for check in checks) else 0


def _text(checks: list[_doctor.Check]) -> str:
    _, colour = _native.process_terminal(1)
    paint = {"ok": "\033[32m", "warning": "\033[33m", "failed": "\033[31m", "skipped": "\033[2m"} if colour else {}
    lines = []
    for check in checks:
        start, end = (paint[check.status], "\033[0m") if colour else ("", "")
        lines.append(f"{start}{check.status:<8}{end}{check.id:<22}{check.message}")
        if check.advice:
            lines.append(f"{'':8}{'':22}-> {check.advice}")
    counts = _doctor.summary(checks)
    lines.append(", ".join(f"{number} {status}" for status, number in counts.items() if number))
    return "\n".join(lines) + "\n"


def write_bundle(path: str, checks: list[_doctor.Check]) -> None:
    """Write the archive: checks, variables, versions, and what the system says of itself, without names of the user's.

    A finished file takes the place of an older one, and is never readable by others, not even while it is written.
    """
    import tempfile
    import zipfile

    clean = Redactor()
    parts = {
        "doctor.json": clean(json.dumps([vars(check) for check in checks], indent=1)),
        "machine.json": clean(json.dumps(_machine(), indent=1)),
        **{name.strip("/").replace("/", "-"): clean(_content(name)) for name in _FILES},
    }
    folder = os.path.dirname(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".dpmem-")  # 0600 by its own promise
    try:
        with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in parts.items():
                archive.writestr(name, text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _machine() -> dict[str, Any]:
    from importlib import metadata

    names = [name for name, _, _ in _native.machine_variables()] + ["LD_LIBRARY_PATH"]
    versions = {dist.metadata["Name"]: dist.version for dist in metadata.distributions() if dist.metadata["Name"]}
    return {
        "python": sys.version,
        "variables": {name: os.environ[name] for name in names if name in os.environ},
        "packages": {name: version for name, version in sorted(versions.items()) if _PACKAGES.fullmatch(name)},
        "gpus": _native.machine_gpus(),
    }


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"


class Redactor:
    """Takes the names of user, host and home folder out of a text."""

    def __init__(self) -> None:
        import getpass
        import socket

        home = os.path.expanduser("~")
        self._home = home if len(home) > 1 else None
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        # "root" is nobody's name and part of many paths.
        names = {user: "<user>", socket.gethostname(): "<host>"}
        self._names = {name: mask for name, mask in names.items() if name and name not in ("root", "localhost")}

    def __call__(self, text: str) -> str:
        """Return the text without them."""
        if self._home is not None:
            text = text.replace(self._home, "~")
        for name, mask in self._names.items():
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", mask, text)
        return text
