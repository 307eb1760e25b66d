"""How long it takes to begin: `dpmem.start()` where arrays exist, `import dpmem`, `%load_ext dpmem`, the pytest plugin
where nobody uses it, and `dpmem run` around nothing."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dpnp

import dpmem
import machine
import table
from rounds import Figure, alternate, judge

START_MS = 20.0
IMPORT_MS = 30.0
PLUGIN_MS = 10.0
LOAD_MS = 10.0
#: Arrays that exist when recording starts.
ARRAYS = 1000
_BIN = Path(sys.executable).parent


def measure(quick: bool) -> list[Figure]:
    machine.show_device()
    repeats = 3 if quick else 30
    return [_start(repeats), _import(repeats), _load(repeats), *_plugin(repeats), *_run(repeats)]


def _start(repeats: int) -> Figure:
    kept = [dpnp.ones(100) for _ in range(ARRAYS)]
    device = kept[0].sycl_device.filter_string
    times, processor = [], []
    for _ in range(repeats):
        begun, begun_processor = time.perf_counter(), time.thread_time()
        dpmem.start()
        times.append((time.perf_counter() - begun) * 1e3)
        processor.append((time.thread_time() - begun_processor) * 1e3)
        dpmem.stop()
        found = dpmem.memory_stats(device)["allocation.device.current"]
        if found < ARRAYS:
            raise AssertionError(f"expected the {ARRAYS} blocks that existed, found {found}")
    detail = f"; processor time {statistics.median(processor):.1f} ms"
    return _milliseconds(f"`dpmem.start()` with {ARRAYS:,} arrays there", times, START_MS, detail)


def _import(repeats: int) -> Figure:
    times = [_import_once() for _ in range(repeats)]
    return _milliseconds("`import dpmem` in a fresh interpreter", times, IMPORT_MS)


def _load(repeats: int) -> Figure:
    times, processor = zip(*(_load_once() for _ in range(repeats)), strict=True)
    detail = f"; processor time {statistics.median(processor):.1f} ms"
    return _milliseconds("`%load_ext dpmem` that nobody uses, `import dpmem` included", list(times), LOAD_MS, detail)


def _load_once() -> tuple[float, float]:
    program = (
        "import time\nfrom IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\n"
        "begun, processor = time.perf_counter(), time.process_time()\nshell.run_line_magic('load_ext', 'dpmem')\n"
        "print(time.perf_counter() - begun, time.process_time() - processor)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    wall, processor = map(float, done.stdout.split())
    return wall * 1e3, processor * 1e3


def _import_once() -> float:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import dpmem"], capture_output=True, text=True, check=True
    )
    found = re.search(r"^import time: +\d+ \| +(\d+) \| dpmem$", done.stderr, re.MULTILINE)
    if found is None:
        raise AssertionError("expected a line about dpmem from -X importtime, found none")
    return int(found[1]) / 1e3


#: What pytest does to load the plugin, in a process that has pytest.
_LOAD = """
import importlib.metadata, sys, time
import pytest
(plugin,) = (each for each in importlib.metadata.entry_points(group="pytest11") if each.name == "dpmem")
begun = time.perf_counter()
plugin.load()
print((time.perf_counter() - begun) * 1e3)
assert "dpmem._native" not in sys.modules
"""


def _plugin(repeats: int) -> list[Figure]:
    """Loading the plugin where nobody uses it, and a whole session of one empty test with and without it."""
    load = [sys.executable, "-c", _LOAD]
    loads = [float(subprocess.run(load, capture_output=True, text=True, check=True).stdout) for _ in range(repeats)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "test_empty.py"
        file.write_text("def test_it():\n    pass\n")
        session = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(file)]
        times = alternate(
            {"without": _process(*session, "-p", "no:dpmem"), "with": _process(*session)},
            rounds=repeats,
        )
    without, with_it = (times.median(way) * 1e3 for way in ("without", "with"))
    detail = f"; {with_it:.0f} ms, without {without:.0f} ms"
    return [
        _milliseconds("pytest: loading the plugin where nobody uses it", loads, PLUGIN_MS),
        times.figure("pytest: a session of one empty test, with it against without", "with", detail=detail),
    ]


def _run(repeats: int) -> list[Figure]:
    times = alternate(
        {
            "python": _process(sys.executable, "-c", "pass"),
            "dpmem run": _process(str(_BIN / "dpmem"), "run", "-c", "pass"),
        },
        rounds=repeats,
    )
    python, dpmem_run = (times.median(way) * 1e3 for way in ("python", "dpmem run"))
    detail = f"; {dpmem_run:.0f} ms, python {python:.0f} ms"
    return [times.figure("`dpmem run -c pass` against `python -c pass`", "dpmem run", detail=detail)]


def _process(*command: str) -> Callable[[], float]:
    def run() -> float:
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - begun

    return run


def _milliseconds(measure: str, times: list[float], target: float, detail: str = "") -> Figure:
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    value = f"{median:.1f} ms ({low:.1f}–{high:.1f}){detail}"
    return Figure(measure, value, target=f"≤ {target:g} ms", verdict=judge(median, target))


if __name__ == "__main__":
    table.main(measure, __doc__)
