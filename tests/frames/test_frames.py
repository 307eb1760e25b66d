"""Frames are read rightly on every CPython at hand: each runs `compare.py`."""

import os
import subprocess
from pathlib import Path

import pytest

from interpreters import interpreters


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
