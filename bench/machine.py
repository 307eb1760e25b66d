"""The machine that a benchmark runs on, and its SYCL device."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

#: Packages whose versions belong to a measurement.
PACKAGES = ("dpmem", "dpnp", "dpctl", "intel-sycl-rt", "intel-opencl-rt", "numpy", "memray")


def show_device() -> None:
    """Have SYCL find pip's CPU device, unless something says where devices are. Before the first use of SYCL."""
    if "OCL_ICD_FILENAMES" not in os.environ:
        os.environ["OCL_ICD_FILENAMES"] = str(Path(sys.prefix) / "lib/libintelocl.so")


def resident_bytes() -> int:
    """Memory of this process that is resident now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def describe() -> list[str]:
    """Lines that say when, on what and with what was measured."""
    now = datetime.datetime.now(datetime.timezone.utc)
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES if _version(name))
    return [
        f"- measured {now:%Y-%m-%d %H:%M} UTC",
        f"- {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        f"- {describe_load()}",
        f"- CPython {platform.python_version()}, {versions}",
    ]


def describe_load() -> str:
    """The load averages as they are now."""
    one, five, fifteen = os.getloadavg()
    return f"load average {one:.2f} (1 min), {five:.2f} (5 min), {fifteen:.2f} (15 min)"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
