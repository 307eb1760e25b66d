"""`testing/simulate.py` as `testing/README.md` shows it: options before and after the machine, mistakes, variables."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from .fixtures import REPOSITORY

HERE = Path(sys.prefix)
LIST = """
import dpctl, sys
print(sorted(device.filter_string for device in dpctl.get_devices()), dpctl.select_default_device().name, sys.argv[1:])
"""


def simulate(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPOSITORY / "testing/simulate.py"), *map(str, words)]
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


def test_the_commands_of_the_readme_are_understood() -> None:
    readme = (REPOSITORY / "testing/README.md").read_text()
    commands = re.findall(r"^python testing/simulate.py (.+)$", readme, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        here = [re.sub(r"^\.venv.*", str(HERE / "bin/python"), word) for word in shlex.split(command)]
        done = simulate("--variables", *here)
        assert done.returncode == 0, done.stderr
        assert "SIMULATED_DEVICES=name=Intel(R)" in done.stdout
        assert ("SYCL_UR_USE_LEVEL_ZERO_V2=1" in done.stdout) == ("--adapter v2" in command)


def test_a_script_runs_on_the_machine_and_keeps_its_own_options() -> None:
    devices = "name=My Card;mem=3GiB"
    names = ["level_zero:gpu:0", "opencl:cpu:0", "opencl:gpu:0"]
    done = simulate("node", "--devices", devices, "--adapter", "v1", HERE / "bin/python", "-c", LIST, "--adapter")
    assert (done.returncode, done.stdout) == (0, f"{names} My Card ['--adapter']\n"), done.stderr


def test_what_can_t_be_is_said() -> None:
    nowhere = simulate("node", "/bin/true")
    assert nowhere.returncode == 2
    assert "`/bin/true`: expected an executable in the `bin` folder of an environment with dpnp" in nowhere.stderr
    unknown = simulate("toaster", HERE / "bin/python")
    assert (unknown.returncode, "invalid choice: 'toaster'" in unknown.stderr) == (2, True)
    without = simulate("node", HERE / "bin/python", PATH="/nowhere")
    assert (without.returncode, without.stderr) == (2, "expected `cargo` on the path, which builds the devices\n")
