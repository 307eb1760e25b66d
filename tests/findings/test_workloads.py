"""The programs in `examples/workloads`, as a user runs them: what is found, and that nothing is left once the advice is
followed.

Only the cheapest with findings are run here; `docs/field-notes.md` has them all.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

WORKLOADS = Path(__file__).parents[2] / "examples" / "workloads"

#: Program, and each line that has a finding, as its source begins.
FOUND = [
    ("convolution_1d", {("DPM301", "result = result + weight")}),
    ("pairwise_distance", {("DPM302", "return dpnp.sqrt((difference**2)")}),
]


def run(program: Path, folder: Path) -> tuple[str, set[tuple[str, str]]]:
    """What it prints, and its findings: the code, and the line's source."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "dpmem", "run", "--no-summary", "--json", str(report), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    findings = json.loads(report.read_text())["findings"]
    assert {finding["file"] for finding in findings} <= {str(program)}
    source = program.read_text().splitlines()
    return done.stdout, {(finding["code"], source[finding["line"] - 1].strip()) for finding in findings}


@pytest.mark.parametrize(("name", "expected"), FOUND, ids=[name for name, _ in FOUND])
def test_following_the_advice_leaves_nothing_to_find(name, expected, tmp_path):
    printed, findings = run(WORKLOADS / f"{name}.py", tmp_path)
    assert {code for code, _ in findings} == {code for code, _ in expected}, findings
    for code, start in expected:
        assert any(at == code and line.startswith(start) for at, line in findings), findings
    printed_then, left = run(WORKLOADS / "advised" / f"{name}.py", tmp_path)
    assert (printed_then, left) == (printed, set())
