"""Environments for `dpmem devices`, `doctor` and `watch`: as pip leaves it, with its own advice followed, simulated."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

_SCRUBBED = re.compile(r"OCL_ICD_|OPENCL_LAYERS$|ONEAPI_DEVICE_SELECTOR$|LD_LIBRARY_PATH$|SYCL_|UR_|ZE_|DPMEM_")
PREFIX = Path(sys.prefix)
RUNTIME = PREFIX / "lib/libintelocl.so"
#: The machine may be busy; nothing here waits for so long by itself.
TIMEOUT_S = 120


@dataclass
class Done:
    code: int
    stdout: str
    stderr: str


class Shell:
    """Runs `dpmem` and `python` with nothing in the environment that chooses devices but what a test sets."""

    def __init__(self, folder):
        self.folder = folder
        self.variables = {name: value for name, value in os.environ.items() if not _SCRUBBED.match(name)}

    def setting(self, **variables):
        other = Shell(self.folder)
        other.variables = {**self.variables, **variables}
        return other

    def start(self, *words, **options):
        return subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def run(self, *words):
        process = self.start(*map(str, words))
        out, err = process.communicate(timeout=TIMEOUT_S)
        return Done(process.returncode, out, err)

    def dpmem(self, *words):
        return self.run(PREFIX / "bin/dpmem", *words)

    def python(self, code):
        return self.run(PREFIX / "bin/python", "-W", "error", "-c", code)


@pytest.fixture
def bare(tmp_path):
    """The environment as pip leaves it."""
    return Shell(tmp_path)


@pytest.fixture
def mended(bare):
    """The same with pip's CPU runtime named."""
    return bare.setting(OCL_ICD_FILENAMES=str(RUNTIME))


@pytest.fixture
def machine(request):
    """The simulated machine of that name."""
    return request.getfixturevalue(request.param)
