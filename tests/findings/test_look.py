"""dpmem looks at operations while they are under way, and at all objects at the end: the program notices nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ALARMS = """
import signal
import dpnp

a, b = dpnp.ones(64, dtype="float32"), dpnp.ones(64, dtype="float64")
a + b
inside = caught = 0


def handler(number, frame):
    global inside
    if frame.f_code.co_filename.endswith("_operands.py"):
        inside += 1
        raise KeyboardInterrupt


signal.signal(signal.SIGALRM, handler)
for _ in range(10):
    names = {}
    exec("\\n".join(f"def f{i}(a, b):\\n    return a + b" for i in range(200)), names)
    signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    for i in range(200):
        try:
            names[f"f{i}"](a, b)
        except KeyboardInterrupt:
            caught += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    if inside:
        break
print(inside > 0, inside == caught)
"""

IMPORTS = """
import builtins
import dpnp

a, b = dpnp.ones(64, dtype="float32"), dpnp.ones(64, dtype="float64")
a + b
seen = []
real = builtins.__import__
builtins.__import__ = lambda name, *rest, **more: seen.append(name) or real(name, *rest, **more)
names = {}
exec("\\n".join(f"def f{i}(a, b):\\n    return a + b" for i in range(5)), names)
for i in range(5):
    names[f"f{i}"](a, b)
builtins.__import__ = real
print(seen)
"""

TUPLES = """
import threading
import dpnp
import dpmem
from dpmem import _runtime

dpmem.start()
x = dpnp.ones(100)
stop, errors = threading.Event(), []


def churn():
    while not stop.is_set():
        try:
            tuple(i for i in range(7))
        except SystemError as error:
            errors.append(str(error))


threads = [threading.Thread(target=churn) for _ in range(3)]
[thread.start() for thread in threads]
for _ in range(15):
    _runtime.inventory()
stop.set()
[thread.join() for thread in threads]
print(errors[:1])
"""


def run(tmp_path: Path, program: str, *options: str) -> tuple[str, dict]:
    script, report = tmp_path / "program.py", tmp_path / "report.json"
    script.write_text(program)
    command = [sys.executable, "-m", "dpmem", "run", "--no-summary", "--json", str(report), *options, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), json.loads(report.read_text())


def test_an_exception_of_a_signal_handler_reaches_the_program(tmp_path: Path) -> None:
    assert run(tmp_path, ALARMS)[0] == "True True"


def test_a_replaced_import_sees_nothing_of_the_look(tmp_path: Path) -> None:
    assert "sys" not in run(tmp_path, IMPORTS)[0]


def test_what_other_threads_are_building_stays_whole(tmp_path: Path) -> None:
    assert run(tmp_path, TUPLES)[0] == "[]"


def test_codes_decide_the_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import dpnp\na = dpnp.ones(50_000)\nfor _ in range(40):\n    b = a + a\n    b.sycl_queue.wait()\n"
    )
    command = [sys.executable, "-m", "dpmem", "run", "--no-summary"]

    def code(*options: str) -> tuple[int, str]:
        done = subprocess.run([*command, *options, str(script)], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stderr

    assert code("--fail-on", "DPM403")[0] == 0
    assert code("--fail-on", "DPM301")[0] == 1
    failed, said = code("--fail-on", "DPM301", "--stack-depth", "0")
    assert failed == 2
    assert "could not all be judged" in said
