"""The programs of this folder, the environments they run in, and one run of one program.

A program's first lines are its header: what it shows, `# waits: yes|no` (does it wait for all queued work
after each step, so that the order of allocations and frees is certain?) and, if it ends badly, `# exit: N`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "programs"
REPOSITORY = Path(__file__).parents[2]
TIMEOUT_S = 100
_SCRUBBED = re.compile(r"OCL_ICD_|ONEAPI_DEVICE_SELECTOR$|LD_LIBRARY_PATH$|SYCL_|UR_|PYTHON|DPMEM_")


@dataclass(frozen=True)
class Program:
    """A program of the corpus and what its header says."""

    path: Path
    shows: str
    waits: bool
    exit_code: int

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds dpnp, and dpmem to be tested."""

    prefix: Path

    @property
    def name(self) -> str:
        found = sorted(self.prefix.glob("lib/python*/site-packages/dpnp-*.dist-info"))
        return found[0].name.removesuffix(".dist-info") if found else self.prefix.name


@dataclass(frozen=True)
class Run:
    """What one run left behind."""

    exit_code: int
    stdout: str
    stderr: str
    report: dict | None


def read_program(path: Path) -> Program:
    header = re.match(r"# (?P<shows>.+)\n# waits: (?P<waits>yes|no)\n(# exit: (?P<exit>\d+)\n)?", path.read_text())
    if header is None:
        raise ValueError(f"{path}: the header needs a line that says what it shows and `# waits: yes|no`")
    return Program(path, header["shows"], header["waits"] == "yes", int(header["exit"] or 0))


PROGRAMS = [read_program(path) for path in sorted(FOLDER.glob("[a-z]*.py"))]


def find_environments() -> list[Environment]:
    """The environment of this interpreter, and the one with the older dpnp where it has been set up."""
    prefixes = [Path(sys.prefix).resolve(), (REPOSITORY / ".venv-dpnp019").resolve()]
    return [Environment(p) for p in dict.fromkeys(prefixes) if p == prefixes[0] or (p / "bin/python").exists()]


ENVIRONMENTS = find_environments()


def run_plain(program: Program, environment: Environment, folder: Path, variables: Mapping[str, str]) -> Run:
    """Run without dpmem, with the one variable set that makes the CPU device visible."""
    icd = {"OCL_ICD_FILENAMES": str(environment.prefix / "lib/libintelocl.so")}
    return _run([environment.prefix / "bin/python", program.path], folder, {**variables, **icd})


def run_recorded(program: Program, environment: Environment, folder: Path, variables: Mapping[str, str]) -> Run:
    """Run under `dpmem run` with nothing set but `variables`, and read the report."""
    dpmem = environment.prefix / "bin/dpmem"
    if not dpmem.exists():
        raise FileNotFoundError(f"`{dpmem}`: dpmem is not installed there; `make setup setup-019` does it")
    report = folder / "report.json"
    return _run([dpmem, "run", "--json", report, "--no-summary", program.path], folder, variables, report)


def _run(command: list[str | Path], folder: Path, variables: Mapping[str, str], report: Path | None = None) -> Run:
    kept = {name: value for name, value in os.environ.items() if not _SCRUBBED.match(name)}
    environment = kept | {"PYTHONDONTWRITEBYTECODE": "1", **variables}
    folder.mkdir(parents=True, exist_ok=True)
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    # files, not pipes: what the program, the trace and the marks write keeps its order
    with out.open("wb") as stdout, err.open("wb") as stderr:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            timeout=TIMEOUT_S,
            check=False,
        )
    text = json.loads(report.read_text()) if report is not None and report.exists() else None
    return Run(done.returncode, out.read_text(), err.read_text(), text)
