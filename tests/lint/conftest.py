"""Paths that the linter's tests share."""

import os
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find_linter() -> list[str] | None:
    """The linter's command: `DPMEM_LINT`, a cargo build, or an installed `dpmem`."""
    if command := os.environ.get("DPMEM_LINT"):
        return command.split()
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for profile in ("release", "debug"):
        binary = target / profile / "dpmem-lint"
        if binary.exists():
            return [str(binary)]
    if command := shutil.which("dpmem"):
        return [command, "lint"]
    return None


@pytest.fixture(scope="session")
def linter() -> list[str]:
    """Skips where nothing has built the linter."""
    command = find_linter()
    if command is None:
        pytest.skip("the linter is not built: cargo build -p dpmem-lint, or set DPMEM_LINT")
    return command


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """An environment in which dpnp finds the CPU device that pip installed."""
    library = pathlib.Path(sys.prefix) / "lib" / "libintelocl.so"
    if not library.exists():
        pytest.skip("no CPU device: this interpreter's environment has no libintelocl.so")
    return {**os.environ, "OCL_ICD_FILENAMES": str(library), "PYTHONWARNINGS": "ignore"}
