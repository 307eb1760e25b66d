"""A fixture for each simulated machine: it starts a process there and returns what became of it.

`tests/conftest.py` hands them to all tests. A test takes `laptop`, say, and calls `laptop.run(program)`: a text of
Python or the path of a file. The process belongs to the environment of this interpreter, or to `laptop.within(prefix)`.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
OLDER = REPOSITORY / ".venv-dpnp019"
TIMEOUT_S = 100
_SCRUBBED = re.compile(
    r"OCL_ICD_|OPENCL_LAYERS$|ONEAPI_DEVICE_SELECTOR$|LD_LIBRARY_PATH$|SIMULATED_|SYCL_|UR_|ZE_|PYTHON|PYTEST_|DPMEM_"
)


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("simulate", REPOSITORY / "testing/simulate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


simulate = _load()


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """What the last line of its output says, if it ended well."""
        assert self.exit_code == 0, self.stderr + self.stdout
        return json.loads(self.stdout.splitlines()[-1])


@dataclass(frozen=True)
class Machine:
    """A simulated machine with a Python environment, and a folder to work in."""

    name: str
    prefix: Path
    folder: Path
    settings: tuple[tuple[str, str], ...] = ()

    def within(self, prefix: Path) -> Machine:
        """The same machine with another environment."""
        return dataclasses.replace(self, prefix=prefix)

    def having(self, devices: str) -> Machine:
        """The same machine with other devices, as `SIMULATED_DEVICES` describes them."""
        return self.setting(SIMULATED_DEVICES=devices)

    def setting(self, **variables: str) -> Machine:
        """The same machine with more variables set."""
        return dataclasses.replace(self, settings=(*self.settings, *variables.items()))

    def adapter(self, version: str) -> Machine:
        """The same machine where SYCL uses that adapter for Level Zero, `v1` or `v2`."""
        return self.setting(SYCL_UR_USE_LEVEL_ZERO_V2=str(int(version == "v2")))

    def variables(self) -> dict[str, str]:
        """All that a process there has set."""
        kept = {name: value for name, value in os.environ.items() if not _SCRUBBED.match(name)}
        paths = {"PYTHONPATH": str(Path(__file__).parent / "modules"), "PYTHONDONTWRITEBYTECODE": "1"}
        return kept | paths | simulate.MACHINES[self.name].variables(self.prefix) | dict(self.settings)

    def run(self, program: str | Path, *arguments: str, timeout: float = TIMEOUT_S) -> Ended:
        """Run a program in Python."""
        words = ["-c", program] if isinstance(program, str) else [str(program)]
        return self.start([str(self.prefix / "bin/python"), *words, *arguments], timeout)

    def dpmem(self, *words: str | Path, timeout: float = TIMEOUT_S) -> Ended:
        """Run a `dpmem` command."""
        return self.start([str(self.prefix / "bin/dpmem"), *map(str, words)], timeout)

    def start(self, command: list[str], timeout: float = TIMEOUT_S) -> Ended:
        """Run any command."""
        self.folder.mkdir(parents=True, exist_ok=True)
        out, err = self.folder / "stdout.txt", self.folder / "stderr.txt"
        # Files, not pipes: what the program and the runtime's trace write keeps its order.
        with out.open("wb") as stdout, err.open("wb") as stderr:
            done = subprocess.run(
                simulate.start_command(simulate.MACHINES[self.name], command),
                cwd=self.folder,
                env=self.variables(),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                timeout=timeout,
                check=False,
            )
        return Ended(done.returncode, out.read_text(), err.read_text(errors="backslashreplace"))


def older_if_there(machine: Machine) -> Machine:
    """The same machine with dpnp 0.19, or the test is skipped."""
    if not (OLDER / "bin/python").exists():
        pytest.skip("the environment with dpnp 0.19 is not set up; `make setup-019` does it")
    return machine.within(OLDER)


@pytest.fixture(scope="session")
def simulated_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels are kept that one process has built, for the next."""
    return tmp_path_factory.mktemp("kernels")


def _machine(name: str, folder: Path, kernels: Path) -> Machine:
    if simulate.MACHINES[name].files and not simulate.can_have_files():
        pytest.skip("this system allows no user namespaces, which the machine's files take")
    cache = {"SYCL_CACHE_PERSISTENT": "1", "SYCL_CACHE_DIR": str(kernels)}
    return Machine(name, Path(sys.prefix), folder, tuple(cache.items()))


@pytest.fixture
def laptop(tmp_path: Path, simulated_kernels: Path) -> Machine:
    """A CPU and an integrated GPU."""
    return _machine("laptop", tmp_path / "laptop", simulated_kernels)


@pytest.fixture
def workstation(tmp_path: Path, simulated_kernels: Path) -> Machine:
    """A CPU and a card of 16 GiB."""
    return _machine("workstation", tmp_path / "workstation", simulated_kernels)


@pytest.fixture
def node(tmp_path: Path, simulated_kernels: Path) -> Machine:
    """A CPU and two large cards."""
    return _machine("node", tmp_path / "node", simulated_kernels)


@pytest.fixture
def opencl_only(tmp_path: Path, simulated_kernels: Path) -> Machine:
    """A CPU and a card that only OpenCL shows."""
    return _machine("opencl_only", tmp_path / "opencl_only", simulated_kernels)


@pytest.fixture
def cpu_only(tmp_path: Path, simulated_kernels: Path) -> Machine:
    """Just a CPU."""
    return _machine("cpu_only", tmp_path / "cpu_only", simulated_kernels)


@pytest.fixture
def no_device(tmp_path: Path, simulated_kernels: Path) -> Machine:
    """An environment as pip leaves it, in which SYCL finds nothing."""
    return _machine("no_device", tmp_path / "no_device", simulated_kernels)


@pytest.fixture
def gpu_without_driver(tmp_path: Path, simulated_kernels: Path) -> Machine:
    """A CPU, and a card that the system shows and for which no driver is installed."""
    return _machine("gpu_without_driver", tmp_path / "gpu_without_driver", simulated_kernels)
