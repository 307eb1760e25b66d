"""Frames are read rightly on every CPython at hand: each runs `compare.py`."""

import glob
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpmem

VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]


def interpreters():
    found = {"{}.{}".format(*sys.version_info): sys.executable}
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
def test_frames_are_those_of_the_interpreter(version, package):
    done = subprocess.run(
        [interpreters()[version], str(Path(__file__).with_name("compare.py"))],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 30, "every kind of frame was compared"
