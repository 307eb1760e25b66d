"""Chains are named rightly, and searching disturbs nothing, on every CPython at hand: each runs the two programs.

Interpreters without dpnp search through stand-ins for its arrays; see `_arrays.py`.
"""

import os
import subprocess
from pathlib import Path

import pytest

from interpreters import interpreters

HERE = Path(__file__).parent


@pytest.mark.parametrize("version", interpreters())
@pytest.mark.parametrize(("program", "least"), [("kinds.py", 59), ("quiet.py", 2)])
def test_program(version, program, least, package):
    done = subprocess.run(
        [interpreters()[version], "-W", "error", "-W", "ignore::DeprecationWarning", str(HERE / program)],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= least, "every case was compared"
