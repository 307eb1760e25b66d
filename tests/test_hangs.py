"""What is told of a program that never ends, and which tests are run again."""

import subprocess
import sys
from pathlib import Path

import pytest

import dpmem
import hangs

WAITS_IN_THE_SYSTEM = "import threading; print(flush=True); threading.Event().wait()"
WAITS_IN_DPMEM = "import dpmem._native as native; print(flush=True); native.cli_lint(['-'])"
WAITS_UNDER_DPMEM = "import dpnp; dpnp.ones(9).sum(); " + WAITS_IN_THE_SYSTEM
CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(hangs, "_SHORTEST_S", 0)


def ends_never(*words):
    """Wait for a program that has printed a line, for a second."""
    with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline()
            process.wait(timeout=1)
        finally:
            subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=False)
            process.kill()


@pytest.mark.parametrize(
    "words",
    [["-c", WAITS_IN_THE_SYSTEM], ["-m", "dpmem", "run", "-c", WAITS_UNDER_DPMEM]],
    ids=["plain", "recorded"],
)
def test_a_program_that_waits_elsewhere_is_run_again(soon, words):
    with pytest.raises(hangs.RuntimeHang, match=r"(?s)timed out after 1 seconds.*--- stacks.*threading\.py:.*futex"):
        ends_never(*words)


@pytest.mark.parametrize("words", [["-c", WAITS_IN_DPMEM], ["-c", CHILD, WAITS_IN_DPMEM]], ids=["itself", "child"])
def test_a_program_that_waits_in_dpmem_is_not(soon, words):
    with pytest.raises(hangs.Hang, match=r"(?s)--- stacks.*cli_lint.*read \(libc") as hang:
        ends_never(*words)
    assert hang.type is hangs.Hang


def test_a_thread_asleep_in_python_code_of_dpmem_is_dpmems():
    package = Path(dpmem.__file__).parent
    text = (
        "Traceback for thread 2 (python) [] (most recent call last):\n"
        '    (Python) File "/home/script.py", line 3, in <module>\n'
        f'    (Python) File "{package}/_failure.py", line 9, in wait\n'
        '    (Python) File "/opt/lib/python3.11/threading.py", line 4, in wait\n'
        '    (C) File "./Modules/timemodule.c", line 383, in time_sleep (/opt/lib/libpython3.11.so.1.0)\n'
        '    (C) File "../sysdeps/clock_nanosleep.c", line 48, in clock_nanosleep@GLIBC_2.2.5 (/usr/lib/libc.so.6)\n'
    )
    runtime = '    (C) File "???", line 0, in sycl::_V1::queue::wait(int) (/opt/lib/libsycl.so.9)\n'
    assert not hangs.parsed(text).elsewhere()
    assert hangs.parsed(text + runtime).elsewhere()


def test_without_stacks_nothing_is_known(soon, monkeypatch):
    assert not hangs.parsed("Operation not permitted\n").elsewhere()
    monkeypatch.setattr(hangs, "stacks", lambda pid: hangs.Stacks((), "no stacks"))
    with pytest.raises(hangs.Hang) as hang:
        ends_never("-c", WAITS_IN_THE_SYSTEM)
    assert hang.type is hangs.Hang


def test_a_short_wait_is_left_alone():
    with pytest.raises(subprocess.TimeoutExpired) as expired:
        ends_never("-c", WAITS_IN_THE_SYSTEM)
    assert expired.type is subprocess.TimeoutExpired
