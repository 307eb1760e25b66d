"""Runs small programs under `dpmem run` and without, and reads the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from dpmem import _icd


@dataclass(frozen=True)
class Ran:
    """What a program left behind."""

    exit_code: int
    stdout: str
    stderr: str
    report: dict | None


def environment(**variables: str) -> dict[str, str]:
    """The environment without what could help dpmem, with `variables`."""
    scrubbed = ("OCL_ICD_", "ONEAPI_", "SYCL_", "LD_LIBRARY_PATH", "DPMEM_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(scrubbed)}
    return {**kept, **variables}


def run(folder: Path, source: str, *options: str, timeout: float = 120, **variables: str) -> Ran:
    """Run `source` as a script under `dpmem run`."""
    script, out = folder / "program.py", folder / "report.json"
    script.write_text(textwrap.dedent(source))
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "dpmem", "run", "--json", str(out), *options, str(script)]
    done = subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, text=True, timeout=timeout
    )
    report = json.loads(out.read_text()) if out.exists() else None
    return Ran(done.returncode, done.stdout, done.stderr, report)


def run_plainly(folder: Path, source: str, *, timeout: float = 120, **variables: str) -> Ran:
    """Run `source` as a script without dpmem, with a device."""
    script = folder / "plain.py"
    script.write_text(textwrap.dedent(source))
    with_device = dict(os.environ)
    _icd.use_pip_runtime()
    with_device["OCL_ICD_FILENAMES"] = os.environ.get("OCL_ICD_FILENAMES", "")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env={**environment(**variables), "OCL_ICD_FILENAMES": with_device["OCL_ICD_FILENAMES"]},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return Ran(done.returncode, done.stdout, done.stderr, None)


def allocations(report: dict, kind: str = "device") -> int:
    """Number of allocations of a kind."""
    return sum(row["alloc_count"] for row in report["usm"] if row["kind"] == kind)
