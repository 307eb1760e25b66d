"""Chains are named rightly, and searching disturbs nothing, on every CPython at hand: each runs the two programs.

Interpreters without dpnp search through stand-ins for its arrays; see `_arrays.py`. `DPMEM_TEST_INTERPRETERS=this`
keeps to the interpreter that runs the tests.
"""

import glob
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpmem

VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
HERE = Path(__file__).parent


def interpreters():
    found = {"{}.{}".format(*sys.version_info): sys.executable}
    if os.environ.get("DPMEM_TEST_INTERPRETERS") == "this":
        return found
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for version in VERSIONS:
        for path in sorted(glob.glob(f"{root}/versions/{version}.*/bin/python")):
            found.setdefault(version, path)
    return found


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    (folder / "dpmem").symlink_to(Path(dpmem.__file__).parent)
    return folder


@pytest.mark.parametrize("version", interpreters())
@pytest.mark.parametrize(("program", "least"), [("kinds.py", 55), ("quiet.py", 2)])
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
