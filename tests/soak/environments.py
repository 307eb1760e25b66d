"""The environments that hold dpnp, and processes started in them with nothing of this one's settings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
_REPOSITORY = HERE.parents[1]
_SCRUBBED = re.compile(r"OCL_ICD_|ONEAPI_DEVICE_SELECTOR$|LD_LIBRARY_PATH$|SYCL_|UR_|PYTHON|PYTEST_|DPMEM_")


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds dpnp, and dpmem to be tested."""

    prefix: Path

    @property
    def name(self) -> str:
        found = sorted(self.packages.glob("dpnp-*.dist-info"))
        return found[0].name.removesuffix(".dist-info") if found else self.prefix.name

    @property
    def packages(self) -> Path:
        return next(self.prefix.glob("lib/python*/site-packages"))

    @property
    def python(self) -> list[str]:
        return [str(self.prefix / "bin/python")]

    def dpmem_run(self, *options: str | Path) -> list[str]:
        """`dpmem run` with options, to be followed by a program."""
        command = self.prefix / "bin/dpmem"
        if not command.exists():
            raise FileNotFoundError(f"`{command}`: dpmem is not installed there; `make setup setup-019` does it")
        return [str(command), "run", *map(str, options)]

    def start(self, command: list[str], folder: Path, **variables: str) -> subprocess.Popen[bytes]:
        """Start a process in a folder, its output in `stdout.txt` and `stderr.txt` there."""
        folder.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not _SCRUBBED.match(name)}
        device = {"OCL_ICD_FILENAMES": str(self.prefix / "lib/libintelocl.so")}
        settings = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONFAULTHANDLER": "1"}
        settings |= device | variables
        with (folder / "stdout.txt").open("wb") as stdout, (folder / "stderr.txt").open("wb") as stderr:
            return subprocess.Popen(
                command,
                cwd=folder,
                env=kept | settings,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    def run(self, command: list[str], folder: Path, timeout: float, **variables: str) -> Ended:
        """Run a process to its end; one that takes longer than `timeout` seconds is killed, and that is an error."""
        process = self.start(command, folder, **variables)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        return Ended(code, _read(folder / "stdout.txt"), _read(folder / "stderr.txt"))


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str


def find_environments() -> list[Environment]:
    """The environment of this interpreter, and the one with the older dpnp where it has been set up."""
    prefixes = dict.fromkeys([Path(sys.prefix).resolve(), (_REPOSITORY / ".venv-dpnp019").resolve()])
    return [Environment(prefix) for prefix in prefixes if (prefix / "bin/python").exists()]


def _read(path: Path) -> str:
    return path.read_text(errors="backslashreplace")
