"""Checks of the environment: why there is no device, or not the one that was expected, and what to do.

Checks of files and variables are native; what takes SYCL or dpnp is asked in child processes with the user's own
environment, each stage within `LIMIT_S`. A check says what was seen and, where something is wrong, the exact command or
variable that mends it.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from dpmem import _devices, _icd, _kernels, _native, _probe, _surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: How long one check may take, not counting time for which it waited for a processor.
LIMIT_S = 3.0
#: What a check answers: status, message, advice.
_Answer = tuple[str, str, str]


@dataclass(frozen=True)
class Check:
    """A check and what came of it; `status` is ok, warning, failed or skipped."""

    id: str
    status: str
    #: What was seen.
    message: str
    #: What to do; empty where there is nothing to do.
    advice: str
    duration_s: float = field(compare=False)

    def __str__(self) -> str:
        advice = f"\n{'':10}-> {self.advice}" if self.advice else ""
        return f"{self.status:<8}  {self.id}: {self.message}{advice}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def doctor(*, only: Iterable[str] = (), skip: Iterable[str] = ()) -> list[Check]:
    """Check the environment as a fresh `python` would find it; `only` and `skip` name checks.

    Children of this process do what takes SYCL; in this process nothing is brought up.

    Raises
    ------
    ValueError
        There is no check of that name.
    """
    only, skip = list(only), list(skip)
    for name in (*only, *skip):
        if name not in NAMES:
            raise ValueError(f"expected the name of a check, got `{name}`; there are {', '.join(NAMES)}")
    patient = Patient(dict(os.environ))
    return [patient.check(name) for name in NAMES if (not only or name in only) and name not in skip]


class Patient:
    """An environment, and what has been found out about it so far."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.environ = environ

    def check(self, name: str) -> Check:
        """Run one check."""
        began = time.monotonic()
        try:
            status, message, advice = _CHECKS[name](self)
        except Exception as problem:
            # A doctor that falls ill must still say what the other checks found.
            status, message, advice = "warning", f"the check itself failed: {type(problem).__name__}: {problem}", ""
        return Check(name, status, message, advice, round(time.monotonic() - began, 3))

    def files(self, name: str) -> _Answer:
        """A check of files and variables."""
        return _surroundings.run_check(name, self.environ)

    @cached_property
    def probe(self) -> _probe.Probe:
        """What dpctl shows."""
        return _probe.probe(["dpctl", "devices"], environ=self.environ, limit_s=LIMIT_S)

    @cached_property
    def dpnp(self) -> _probe.Probe:
        """Whether dpnp can be imported."""
        return _probe.probe(["dpnp"], environ=self.environ, limit_s=LIMIT_S)

    @cached_property
    def view(self) -> _devices.View:
        """Devices of SYCL and of the system."""
        return _devices.View(self.probe.devices)

    @cached_property
    def without_selector(self) -> _probe.Probe:
        """The same without a selector."""
        environ = {name: value for name, value in self.environ.items() if name != "ONEAPI_DEVICE_SELECTOR"}
        return _probe.probe(["dpctl", "devices"], environ=environ, limit_s=LIMIT_S)

    @property
    def selector(self) -> str:
        """The selector in force."""
        return self.environ.get("ONEAPI_DEVICE_SELECTOR", "")

    def first_remedy(self) -> str:
        """The advice of the first check that found why there is no device."""
        for name in ("env.selector", "versions.compatible", "opencl.icd", "opencl.cpu-runtime"):
            check = self.check(name)
            if check.status == "failed":
                return check.advice
        return ""


def _versions(patient: Patient) -> _Answer:
    from importlib import metadata

    shown = []
    for name in ("dpnp", "dpctl", "intel-sycl-rt", "dpcpp-cpp-rt"):
        try:
            shown.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    folder = _icd.package_folder("dpctl")
    if folder is None:
        return "failed", "dpctl is not installed", "python -m pip install dpnp"
    wanted = _needed_runtime(folder)
    folders = [os.path.join(prefix, "lib") for prefix in _icd.prefixes()]
    folders += [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    there = {name for path in folders if os.path.isdir(path) for name in os.listdir(path)}
    found = sorted(name for name in there if re.fullmatch(r"libsycl\.so\.\d+", name))
    if wanted is not None and wanted not in there and found:
        year = {"8": "2025", "9": "2026"}.get(wanted.rpartition(".")[2])
        advice = "python -m pip install --upgrade dpnp dpctl"
        if year is not None:
            advice += f", or for this version: python -m pip install 'intel-sycl-rt=={year}.*' 'dpcpp-cpp-rt=={year}.*'"
        return (
            "failed",
            f"{', '.join(shown)}: dpctl was built for {wanted}, but {' and '.join(found)} is installed",
            advice,
        )
    return "ok", ", ".join(shown), ""


def _needed_runtime(folder: str) -> str | None:
    """The `libsycl` that dpctl's interface library was linked against."""
    for name in sorted(os.listdir(folder)):
        if name.startswith("libDPCTLSyclInterface.so"):
            with open(os.path.join(folder, name), "rb") as file:
                found = re.search(rb"\0(libsycl\.so\.\d+)\0", file.read())
            if found is not None:
                return found[1].decode()
    return None


def _selector(patient: Patient) -> _Answer:
    answer = patient.files("env.selector")
    if answer[0] != "ok" or not patient.selector or patient.probe.devices or "dpctl" in patient.probe.errors:
        return answer
    others = [facts["filter"] for facts in patient.without_selector.devices]
    if not others:
        return answer
    return (
        "failed",
        f"ONEAPI_DEVICE_SELECTOR={patient.selector} matches no device; without it there would be {', '.join(others)}",
        "unset ONEAPI_DEVICE_SELECTOR",
    )


def _icd_check(patient: Patient) -> _Answer:
    status, message, advice = patient.files("opencl.icd")
    if status == "failed" and patient.probe.devices:
        # Another backend has a device, so the program runs; OpenCL's are missing all the same.
        return "warning", message, advice
    return status, message, advice


def _dpctl(patient: Patient) -> _Answer:
    return _imported(patient, patient.probe, "dpctl")


def _dpnp(patient: Patient) -> _Answer:
    return _imported(patient, patient.dpnp, "dpnp")


def _imported(patient: Patient, probe: _probe.Probe, name: str) -> _Answer:
    if name in probe.results:
        return "ok", f"{name} {probe.results[name]} in {probe.durations[name]:.2g} s", ""
    error = probe.errors.get(name, "not tried")
    advice = "python -m pip install dpnp" if "No module named" in error else patient.first_remedy()
    return "failed", f"`import {name}` failed: {error}", advice


def _default(patient: Patient) -> _Answer:
    if patient.probe.errors and not patient.probe.devices:
        return "failed", f"SYCL could not be asked: {_devices.failure(patient.probe)}", patient.first_remedy()
    default = patient.view.default_device(_devices.explain_variables(patient.environ, limit_s=LIMIT_S), files=False)
    found = default.device
    if found is None:
        return "failed", f"there is no device: {default.reason}", patient.first_remedy()
    message = f"{found.filter} ({found.name}): {default.reason}"
    if found.type == "cpu" and any(device.type == "gpu" for device in patient.view.devices):
        return "warning", f"the default is the CPU although there is a GPU: {message}", _gpu_advice(patient)
    return "ok", message, ""


def _gpu_advice(patient: Patient) -> str:
    visible = next((device for device in patient.view.devices if device.type == "gpu" and device.filter), None)
    if visible is not None:
        return f"export ONEAPI_DEVICE_SELECTOR={visible.backend}:gpu"
    for name in ("drm.permission", "container.devices", "levelzero.loader", "levelzero.driver"):
        status, _, advice = patient.files(name)
        if status == "failed":
            return advice
    return ""


def _kernel(patient: Patient) -> _Answer:
    if "dpnp" not in patient.dpnp.results:
        return "skipped", "dpnp can't be imported", ""
    devices = [device for device in patient.view.devices if device.filter]
    if not devices:
        return "skipped", "there is no device", ""
    outcomes = _kernels.try_each(devices, limit_s=LIMIT_S)
    message = "; ".join(f"{name}: {outcome}" for name, outcome in outcomes.items())
    broken = [name for name, outcome in outcomes.items() if outcome != "ok"]
    if not broken:
        return "ok", f"allocated and computed on {', '.join(outcomes)}", ""
    backend, kind, _ = broken[0].split(":")
    return "failed", message, f"keep programs off it: export ONEAPI_DEVICE_SELECTOR='*:*;!{backend}:{kind}'"


def _preferred(patient: Patient) -> _Answer:
    devices = patient.view.devices
    for device in devices:
        if device.default and device.backend == "opencl" and device.type == "gpu":
            other = next((name for name in device.also if name.startswith("level_zero")), None)
            if other is not None:
                why = "frees without waiting, pools small blocks and tells free memory, which OpenCL doesn't"
                return (
                    "warning",
                    f"the default reaches {device.name} through OpenCL; Level Zero ({other}) {why}",
                    "export ONEAPI_DEVICE_SELECTOR=level_zero:gpu",
                )
            return (
                "warning",
                f"{device.name} is reached through OpenCL only; Level Zero would tell free memory and is preferred",
                _gpu_loader_advice(patient),
            )
    if any(device.backend == "level_zero" for device in devices):
        return "ok", "GPUs are reached through Level Zero", ""
    return "skipped", "no GPU is visible through OpenCL or Level Zero", ""


def _gpu_loader_advice(patient: Patient) -> str:
    for name in ("levelzero.loader", "levelzero.driver"):
        status, _, advice = patient.files(name)
        if status == "failed":
            return advice
    return "sudo apt install libze1 libze-intel-gpu1 (Debian, Ubuntu)"


def _watch_commands(patient: Patient) -> _Answer:
    from shutil import which

    commands = []
    gpus = sorted(
        (device for device in patient.view.devices if device.type == "gpu"), key=lambda device: device.pci_address or ""
    )
    nodes = {gpu["pci_address"]: gpu["node"] for gpu in _native.machine_gpus()}
    for number, device in enumerate(gpus):
        node = nodes.get(device.pci_address or "")
        candidates = [
            ("xpu-smi", f"xpu-smi dump -d {number} -m 18,5"),
            ("intel_gpu_top", f"sudo intel_gpu_top -d drm:/dev/dri/{node}" if node else "sudo intel_gpu_top"),
            ("ze_info", "ze_info"),
            ("clinfo", "clinfo -l"),
        ]
        if device.backend == "cuda" or "NVIDIA" in device.name:
            candidates = [("nvidia-smi", f"nvidia-smi -i {device.pci_address or number} -l 1")]
        command = next((text for tool, text in candidates if which(tool)), "dpmem watch")
        commands.append(f"{device.filter or device.name}: {command}")
    if any(device.type == "cpu" for device in patient.view.devices):
        commands.append("CPU: dpmem watch")
    if not commands:
        return "skipped", "there is no device to watch", ""
    return "ok", "; ".join(commands), ""


def _of_files(name: str) -> Callable[[Patient], _Answer]:
    return lambda patient: patient.files(name)


#: Every check, in the order in which they are shown: causes before effects.
_CHECKS: dict[str, Callable[[Patient], _Answer]] = {
    "versions.compatible": _versions,
    **{name: _of_files(name) for name in _native.machine_checks()},
    "dpctl.import": _dpctl,
    "dpnp.import": _dpnp,
    "default-device": _default,
    "dpnp.kernel": _kernel,
    "levelzero.preferred": _preferred,
    "watch.command": _watch_commands,
}
_CHECKS["env.selector"] = _selector
_CHECKS["opencl.icd"] = _icd_check
NAMES = tuple(_CHECKS)


def summary(checks: list[Check]) -> dict[str, int]:
    """How many checks had which status."""
    return {
        status: sum(check.status == status for check in checks) for status in ("ok", "warning", "failed", "skipped")
    }
