"""Every CPython that is at hand: the one that runs the tests, and those that pyenv has.

`DPMEM_TEST_INTERPRETERS=this` keeps to the one that runs the tests.
"""

import functools
import glob
import os
import sys
from pathlib import Path

import pytest

import dpmem

VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]


@functools.cache
def interpreters() -> dict[str, str]:
    """Their paths by version, such as `3.11`."""
    found = {"{}.{}".format(*sys.version_info): sys.executable}
    if os.environ.get("DPMEM_TEST_INTERPRETERS") != "this":
        root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        for version in VERSIONS:
            for path in sorted(glob.glob(f"{root}/versions/{version}.*/bin/python")):
                found.setdefault(version, path)
    return found


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds dpmem and nothing else, for interpreters that do not have it installed."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "dpmem").symlink_to(Path(dpmem.__file__).parent)
    return folder
