"""Paths that the linter's tests share."""

import os
import pathlib
import sys

import pytest


@pytest.fixture(scope="session")
def linter() -> list[str]:
    """The linter as people run it: of the environment that runs the tests."""
    return [str(pathlib.Path(sys.executable).with_name("dpmem")), "lint"]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """An environment in which dpnp finds the CPU device that pip installed."""
    library = pathlib.Path(sys.prefix) / "lib" / "libintelocl.so"
    return {**os.environ, "OCL_ICD_FILENAMES": str(library), "PYTHONWARNINGS": "ignore"}
