"""Whole programs whose faults are known: every finding of `dpmem run` has to be true, and none may be missing.

`clean/` holds programs without a fault: no finding at all. A program in `faulty/` says in its header what is
wrong with it, and a comment `# @NAME` at the end of a line names that line:

    # expect: DPM301 at step           this finding, on that line
    # expect: DPM302                   this finding, on any line of the program
    # allow: DPM201 at kept            true of the program as well, but not what it is about

Every other finding is an error. What a header says was judged from the program and the definition of the
findings, not from what the rules answer. The programs run two at a time, before the first test asks for its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
TIMEOUT_S = 100
_SCRUBBED = re.compile(r"OCL_ICD_|ONEAPI_DEVICE_SELECTOR$|LD_LIBRARY_PATH$|SYCL_|UR_|PYTHON|DPMEM_")
_CLAIM = re.compile(r"# (?P<verb>expect|allow): (?P<code>DPM\d{3})(?: at (?P<mark>\w+))?$", re.M)


@dataclass(frozen=True)
class Claim:
    """A finding that a program's header speaks of; `line` is None if any line will do."""

    code: str
    line: int | None
    expected: bool

    def __str__(self) -> str:
        return self.code if self.line is None else f"{self.code} at line {self.line}"

    def covers(self, finding: dict, program: Path) -> bool:
        here = finding["file"] is not None and Path(finding["file"]).name == program.name
        return finding["code"] == self.code and here and self.line in (None, finding["line"])


@dataclass(frozen=True)
class Program:
    """A program of the corpus and what its header says."""

    path: Path
    claims: tuple[Claim, ...]

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"


@dataclass(frozen=True)
class Run:
    """What one run left behind; `report` is None if none was written."""

    exit_code: int
    stderr: str
    report: dict | None


def read_program(path: Path) -> Program:
    source = path.read_text()
    lines = enumerate(source.splitlines(), 1)
    marks = {mark: number for number, line in lines for mark in re.findall(r"# @(\w+)$", line)}
    header = re.match(r"(#.*\n)*", source)[0]
    claims = tuple(
        Claim(found["code"], marks[found["mark"]] if found["mark"] else None, found["verb"] == "expect")
        for found in _CLAIM.finditer(header)
    )
    if len(claims) != header.count("expect:") + header.count("allow:"):
        raise ValueError(f"{path}: a line of the header is neither `expect: CODE [at MARK]` nor `allow: …`")
    if (path.parent.name == "faulty") != any(claim.expected for claim in claims):
        raise ValueError(f"{path}: faulty programs expect a finding, clean ones none")
    return Program(path, claims)


PROGRAMS = {program.name: program for program in map(read_program, sorted(FOLDER.glob("[cf]*/*.py")))}


def run(program: Program, folder: Path, kernels: Path) -> Run:
    kept = {name: value for name, value in os.environ.items() if not _SCRUBBED.match(name)}
    cache = {"SYCL_CACHE_PERSISTENT": "1", "SYCL_CACHE_DIR": str(kernels)}
    folder.mkdir(parents=True)
    report = folder / "report.json"
    done = subprocess.run(
        [Path(sys.prefix) / "bin/dpmem", "run", "--json", report, "--no-summary", program.path],
        cwd=folder,
        env=kept | cache | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=False,
    )
    text = json.loads(report.read_text()) if report.exists() else None
    return Run(done.returncode, done.stderr.decode(errors="replace"), text)


@pytest.fixture(scope="session")
def run_of(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Run]]:
    """What the run of a program left; the programs of all selected tests run from now on, two at a time."""
    root = tmp_path_factory.mktemp("findings")
    selected = (item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec"))
    with ThreadPoolExecutor(2) as pool:
        runs: dict[str, Future[Run]] = {
            name: pool.submit(run, PROGRAMS[name], root / name, root / "kernels")
            for name in selected
            if name in PROGRAMS
        }
        yield lambda name: runs[name].result()
        for future in runs.values():
            future.cancel()


@pytest.mark.parametrize("name", PROGRAMS)
def test_findings_are_those_of_the_program(name: str, run_of: Callable[[str], Run]) -> None:
    program, outcome = PROGRAMS[name], run_of(name)
    assert outcome.exit_code == 0, outcome.stderr[-2000:]
    assert outcome.report is not None, outcome.stderr[-2000:]
    assert outcome.report["recording"]["complete"], outcome.report["recording"]
    found = outcome.report["findings"]
    missing = [c for c in program.claims if c.expected and not any(c.covers(f, program.path) for f in found)]
    untrue = [f for f in found if not any(claim.covers(f, program.path) for claim in program.claims)]
    if missing or untrue:
        pytest.fail(describe(program, missing, untrue, found), pytrace=False)


def describe(program: Program, missing: list[Claim], untrue: list[dict], found: list[dict]) -> str:
    expected = [str(claim) for claim in program.claims if claim.expected]
    allowed = [str(claim) for claim in program.claims if not claim.expected]
    lines = [
        str(program.path),
        f"  expected: {', '.join(expected) or 'no finding'}" + (f" (allowed: {', '.join(allowed)})" if allowed else ""),
        *(f"  missing:  {claim}" for claim in missing),
        *(f"  untrue:   {finding['code']} at line {finding['line']}" for finding in untrue),
    ]
    for f in found:
        lines += [
            f"  found:    {f['code']} at {f['file']}:{f['line']}: {f['message']}",
            f"            {json.dumps(f['evidence'])}",
        ]
    return "\n".join(lines if found else [*lines, "  found:    nothing"])


def test_the_corpus_is_large_enough() -> None:
    clean = [program for program in PROGRAMS.values() if not program.claims]
    assert len(clean) >= 32
    assert len(PROGRAMS) - len(clean) >= 44
