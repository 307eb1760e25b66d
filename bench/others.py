"""What other ways of looking cost: `script.py` as a whole process, plain and under each of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import machine
import table
from rounds import Figure, alternate

#: Passes of the script a process.
PASSES = 2
_SCRIPT = str(Path(__file__).with_name("script.py"))
_BIN = Path(sys.executable).parent


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    with tempfile.TemporaryDirectory() as folder:
        record = str(Path(folder) / "memray.bin")
        memray = (sys.executable, "-m", "memray", "run", "--force", "--quiet", "--output", record)
        ways = {
            "python": _process((sys.executable,)),
            "`dpmem run`": _process((str(_BIN / "dpmem"), "run")),
            "memray": _process(memray),
            "`SYCL_UR_TRACE=2`, output thrown away": _process((sys.executable,), SYCL_UR_TRACE="2"),
        }
        times = alternate(ways, rounds=2 if quick else 5)
    plain = times.median("python")
    return [
        times.figure(f"whole process, {way}", way, detail=f"; {times.median(way):.1f} s, plain {plain:.1f} s")
        for way in list(ways)[1:]
    ]


def _process(command: tuple[str, ...], **environment: str) -> Callable[[], float]:
    def run() -> float:
        begun = time.perf_counter()
        subprocess.run(
            (*command, _SCRIPT, str(PASSES)),
            check=True,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - begun

    return run


if __name__ == "__main__":
    table.main(measure, __doc__)
