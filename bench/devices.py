"""What it costs to look at devices: a reading, `mem_get_info`, and `dpmem devices` beyond the start of SYCL."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import dpnp

import dpmem
import machine
import table
from dpmem import _native
from rounds import Figure, alternate, judge

READING_MS = 1.0
DEVICES_S = 1.0
_BIN = Path(sys.executable).parent
_HOST = {
    "type": "cpu",
    "integrated": True,
    "pci_address": None,
    "ids": None,
    "capacity_bytes": None,
    "sycl_free_bytes": None,
    "own_bytes": 0,
}


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    repeats = 20 if quick else 500
    x = dpnp.ones(10)
    return [
        _milliseconds("a reading of the host's memory", lambda: _native.device_reading(_HOST), repeats),
        _milliseconds("`dpmem.mem_get_info(device)` with SYCL up", lambda: dpmem.mem_get_info(x.device), repeats),
        _devices(3 if quick else 15),
    ]


def _milliseconds(what: str, call: Callable[[], object], repeats: int) -> Figure:
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append((time.perf_counter() - begun) * 1e3)
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    target = f"≤ {READING_MS:g} ms"
    return Figure(what, f"{median:.2f} ms ({low:.2f}–{high:.2f})", target=target, verdict=judge(median, READING_MS))


def _devices(rounds: int) -> Figure:
    sycl = [sys.executable, "-c", "import dpctl; dpctl.get_devices()"]
    times = alternate({"sycl": _process(*sycl), "devices": _process(str(_BIN / "dpmem"), "devices")}, rounds=rounds)
    start, devices = times.median("sycl"), times.median("devices")
    value = f"{devices - start:.2f} s; {devices:.2f} s, dpctl alone {start:.2f} s"
    verdict = judge(devices - start, DEVICES_S)
    return Figure("`dpmem devices` beyond SYCL's start", value, target=f"≤ {DEVICES_S:g} s", verdict=verdict)


def _process(*command: str) -> Callable[[], float]:
    # As pip leaves it, so that no variable has to be explained by further children.
    environ = {name: value for name, value in os.environ.items() if name != "OCL_ICD_FILENAMES"}

    def run() -> float:
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environ)
        return time.perf_counter() - begun

    return run


if __name__ == "__main__":
    table.main(measure, __doc__)
