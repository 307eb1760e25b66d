"""Starts a program on a machine that this one is not: `python testing/simulate.py workstation .venv/bin/python x.py`.

It knows the machines, builds the library of devices and says which variables make a process see them. The tests'
fixtures use it as a module.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CRATE = REPOSITORY / "testing/simulated-devices"
TARGET = REPOSITORY / "target/simulated"
#: Variables that say where drivers are; a simulated machine has none but its own.
_DRIVERS = re.compile(r"OCL_ICD_|OPENCL_LAYERS$|LD_LIBRARY_PATH$|SIMULATED_")


@dataclass(frozen=True)
class Machine:
    """What is in a machine and which of its drivers are installed."""

    shows: str
    devices: str = ""
    cpu_runtime: bool = True
    level_zero: bool = False
    opencl: bool = False
    #: Files that the machine has beside this one's, all of them below /dev and /sys/class, and their text.
    files: tuple[tuple[str, str], ...] = ()

    def variables(self, prefix: Path, devices: str | None = None) -> dict[str, str]:
        """What a process of the environment in `prefix` needs to have set; `devices` describes others than ours."""
        runtime = str(prefix / "lib/libintelocl.so")
        found = {"OCL_ICD_FILENAMES": runtime} if self.cpu_runtime else {}
        if not (self.level_zero or self.opencl):
            return found
        library = build()
        found["SIMULATED_DEVICES"] = self.devices if devices is None else devices
        found["SIMULATED_LIBRARY"] = str(library)
        found["SIMULATED_RUNTIME"] = runtime
        if self.opencl:
            found["OPENCL_LAYERS"] = str(library)
        if self.level_zero:
            found["LD_LIBRARY_PATH"] = str(_loader_folder(library))
        return found


def _gpu(identity: str, name: str, gibibytes: int, *more: str) -> str:
    return ";".join([f"name={name}", f"mem={gibibytes}GiB", f"id={identity}", *more])


_INTEGRATED = _gpu("0x7d55", "Intel(R) Arc(TM) Graphics", 12, "max_alloc=4GiB", "integrated=1", "units=128")
_CARD = _gpu("0x56a0", "Intel(R) Arc(TM) A770 Graphics", 16, "max_alloc=4GiB", "units=512")
_LARGE = _gpu("0x0bd5", "Intel(R) Data Center GPU Max 1550", 64, "units=1024")
_NODE = "/sys/class/drm/renderD128/device/"

MACHINES = {
    "laptop": Machine("CPU and integrated GPU", _INTEGRATED, level_zero=True, opencl=True),
    "workstation": Machine("CPU and a card of 16 GiB", _CARD, level_zero=True, opencl=True),
    "node": Machine("CPU and two large cards", f"{_LARGE}|{_LARGE}", level_zero=True, opencl=True),
    "opencl_only": Machine("CPU and a card without Level Zero", _CARD, opencl=True),
    "cpu_only": Machine("CPU"),
    "no_device": Machine("an environment as pip leaves it: no driver is registered", cpu_runtime=False),
    "gpu_without_driver": Machine(
        "CPU, and a card for which no driver is installed",
        files=(
            ("/dev/dri/renderD128", ""),
            (_NODE + "vendor", "0x8086\n"),
            (_NODE + "device", "0x56a0\n"),
            (_NODE + "uevent", "DRIVER=i915\nPCI_ID=8086:56A0\nPCI_SLOT_NAME=0000:03:00.0\n"),
        ),
    ),
}


@functools.cache
def build() -> Path:
    """Build the library if it is not up to date, and say where it is."""
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", str(CRATE / "Cargo.toml")]
    subprocess.run([*command, "--target-dir", str(TARGET)], check=True)
    return TARGET / "release/libsimulated_devices.so"


def _loader_folder(library: Path) -> Path:
    """A folder with nothing but the library, under the name of the Level Zero loader."""
    folder = TARGET / "level-zero"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "libze_loader.so.1"
    if not link.is_symlink() or link.readlink() != library:
        # Another process may be doing the same.
        draft = folder / f"draft-{os.getpid()}"
        draft.symlink_to(library)
        draft.replace(link)
    return folder


def start_command(machine: Machine, command: Sequence[str]) -> list[str]:
    """The command to start instead, so that the process sees the machine's files; they are nobody else's."""
    if not machine.files:
        return list(command)
    files = [word for path, text in machine.files for word in (path, text)]
    words = [str(len(files)), *files, *command]
    return ["unshare", "--map-root-user", "--mount", "sh", str(Path(__file__).with_name("files.sh")), *words]


def can_have_files() -> bool:
    """Whether this system lets a process have files of its own (user namespaces)."""
    try:
        done = subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    machines = "\n".join(f"  {name:20} {machine.shows}" for name, machine in MACHINES.items())
    parser.epilog = f"machines:\n{machines}"
    parser.add_argument("machine", choices=MACHINES, metavar="MACHINE")
    parser.add_argument("--devices", help="others than the machine's own, as in SIMULATED_DEVICES")
    parser.add_argument("--adapter", choices=["v1", "v2"], help="SYCL's adapter for Level Zero")
    parser.add_argument("--variables", action="store_true", help="print the variables instead of starting anything")
    # Two, so that options may stand before and after the machine; what follows the command is the command's.
    parser.add_argument("command", metavar="COMMAND", help="an executable of an environment with dpnp")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="what it is given")
    arguments = parser.parse_args()
    program = Path(arguments.command)
    prefix = program.absolute().parent.parent
    if not (prefix / "lib/libintelocl.so").exists():
        parser.error(f"`{program}`: expected an executable in the `bin` folder of an environment with dpnp")
    try:
        variables = MACHINES[arguments.machine].variables(prefix, arguments.devices)
    except FileNotFoundError:
        parser.exit(2, "expected `cargo` on the path, which builds the devices\n")
    except subprocess.CalledProcessError:
        sys.exit(2)  # cargo has said why
    if arguments.adapter:
        variables["SYCL_UR_USE_LEVEL_ZERO_V2"] = str(int(arguments.adapter == "v2"))
    if arguments.variables:
        sys.stdout.writelines(f"{name}={value}\n" for name, value in sorted(variables.items()))
        return
    kept = {name: value for name, value in os.environ.items() if not _DRIVERS.match(name)}
    command = start_command(MACHINES[arguments.machine], [arguments.command, *arguments.arguments])
    os.execvpe(command[0], command, kept | variables)


if __name__ == "__main__":
    main()
