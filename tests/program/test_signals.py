"""Termination from outside: the report is written and the process dies by the same signal."""

# ruff: noqa: E501 (whole programs on a line)

import contextlib
import json
import os
import signal
import time

import pytest

SLEEPING = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(60)"
BUSY = "print('ready', flush=True)\nwhile True: pass"
WAITS_FOR_CHILD = "import subprocess, sys\nprint('ready', flush=True)\nsubprocess.run(['sleep', '60'], stdin=-3, stdout=-3, stderr=-3)"
IN_THREAD = "import threading, time\nt = threading.Thread(target=lambda: (print('ready', flush=True), time.sleep(60)))\nt.start()\nt.join()"
AFTER_MAIN = (
    "import threading, time\nthreading.Thread(target=lambda: (print('ready', flush=True), time.sleep(60))).start()"
)
READING = "print('ready', flush=True)\ninput()"


def terminated(python, source, number=signal.SIGTERM, options=(), ready=b"ready\n", **keywords):
    """Runs source until it says that it is ready, sends the signal; exit code, output, errors, report (or None)."""
    report = python.folder / "report.json"
    python.write("script.py", source)
    options = ["--json", report, *options]
    with python.start("script.py", options=options, stdin=-1, start_new_session=True, **keywords) as process:
        assert process.stdout.readline() == ready
        process.send_signal(number)
        try:
            out, err = process.communicate(timeout=30)
        finally:
            kill_group(process.pid)
    return process.returncode, out, err, json.loads(report.read_text()) if report.exists() else None


def kill_group(group):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


@pytest.mark.parametrize("source", [SLEEPING, BUSY, WAITS_FOR_CHILD, IN_THREAD, AFTER_MAIN, READING])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_report_is_written(python, source, number):
    code, out, err, report = terminated(python, source, number)
    assert (code, out) == (-number, b"")
    assert report["exit_code"] == -number
    assert any(number.name in note for note in report["recording"]["notes"])
    assert err.strip(), "the summary"


def test_a_signal_before_recording_has_begun(python):
    starting = (
        "import os, signal, sys, dpmem._recording as r\nr.begin = lambda **_: os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    starting += "from dpmem.__main__ import main\nsys.argv[1:] = ['run', '-c', 'print(1)']\nmain()"
    done = python.run("-c", starting, dpmem=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, b"", b"")


def test_json_on_standard_output(python):
    with python.start("-c", SLEEPING, options=["--json", "-", "--no-summary"]) as process:
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (-signal.SIGTERM, b"")
    assert json.loads(out)["exit_code"] == -signal.SIGTERM


def test_nothing_is_visible_to_the_program(python):
    source = "import signal\nprint(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP), signal.signal(signal.SIGTERM, signal.SIG_DFL))\n"
    python.same("-c", source)


@pytest.mark.parametrize(
    "handler",
    [
        "signal.signal(signal.SIGTERM, lambda *a: print('handled'))\nos.kill(os.getpid(), 15)\nprint('went on')",
        "signal.signal(signal.SIGTERM, lambda *a: sys.exit(4))\nos.kill(os.getpid(), 15)\nwhile True: pass",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.kill(os.getpid(), 15)\nprint('went on')",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [15])\nos.kill(os.getpid(), 15)\nprint(signal.sigwait([15]))",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [15])\nos.kill(os.getpid(), 15)\nprint(signal.sigpending())",
        "signal.set_wakeup_fd(-1)\nimport faulthandler\nfaulthandler.enable()\nprint('x')",
    ],
)
def test_the_programs_own_handler_wins(python, handler):
    python.same("-c", "import os, signal, sys\n" + handler)


def test_ignored_from_the_start_stays_ignored(python):
    source = (
        "import os, signal\nprint(signal.getsignal(1), signal.getsignal(15))\nos.kill(os.getpid(), 1)\nprint('went on')"
    )
    python.write("script.py", source)
    results = []
    for dpmem in False, True:
        with python.start(
            "script.py",
            dpmem=dpmem,
            options=["--no-summary"],
            preexec_fn=lambda: signal.signal(1, signal.SIG_IGN),
        ) as process:
            results.append((*process.communicate(timeout=30), process.returncode))
    assert results[0] == results[1]
    assert results[0][0].endswith(b"went on\n")


@pytest.mark.parametrize(
    "call",
    ["os.kill(os.getpid(), 15)", "signal.raise_signal(15)", "signal.pthread_kill(threading.get_ident(), 15)"],
)
def test_a_program_that_terminates_itself_does_not_go_on(python, call):
    report = python.folder / "report.json"
    source = (
        f"import atexit, os, signal, threading\natexit.register(print, 'x', flush=True)\n{call}\nprint('x', flush=True)"
    )
    done = python.run("-c", source, options=["--json", report])
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, b"")
    assert json.loads(report.read_text())["exit_code"] == -signal.SIGTERM
    in_thread = f"import os, signal, threading, time\nthreading.Thread(target=lambda: {call}).start()\ntime.sleep(30)"
    assert python.run("-c", in_thread).returncode == -signal.SIGTERM


def test_many_signals_at_once(python):
    python.write("script.py", SLEEPING)
    report = python.folder / "report.json"
    with python.start("script.py", options=["--json", report]) as process:
        process.stdout.readline()
        for _ in range(20):
            process.terminate()
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGTERM, -signal.SIGHUP)
    assert json.loads(report.read_text())["exit_code"] == process.returncode


def test_python_that_is_never_let_go_of(python):
    """The process dies all the same; the report is lost and that is said."""
    held = "import ctypes\nctypes.PyDLL(None).system(b'echo ready; exec sleep 60 </dev/null >/dev/null 2>&1')"
    code, _, err, report = terminated(python, held)
    assert code == -signal.SIGTERM
    assert report is None
    assert b"no report" in err


def test_during_clean_up(python):
    source = "import atexit, time\nprint('main', flush=True)\natexit.register(lambda: (print('ready', flush=True), time.sleep(60)))"
    with python.start("-c", source, options=["--json", python.folder / "report.json"]) as process:
        assert process.stdout.readline() == b"main\n"
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    assert (python.folder / "report.json").exists()
    assert err.strip(), "the summary"


@pytest.mark.parametrize("step", range(8))
def test_at_any_moment(python, step):
    """From start-up to the last clean-up, a signal kills and leaves no half report."""
    python.write("script.py", "import atexit\natexit.register(print, 'x')\nfor _ in range(100000): pass")
    report = python.folder / "report.json"
    with python.start("script.py", options=["--json", report]) as process:
        time.sleep(0.01 + step * 0.012)  # spreads the signals; any outcome below is right at any of them
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGTERM, 0)
    if report.exists():
        assert json.loads(report.read_text())["exit_code"] in (-signal.SIGTERM, 0)
    assert [path.name for path in python.folder.iterdir() if "unfinished" in path.name] == []


def test_no_thread_of_ours(python):
    python.same("-c", "import os; print(os.listdir('/proc/self/task') == [str(os.getpid())])")


def test_keyboard_interrupt_in_a_process_group(python):
    # In short steps: a signal between the interpreter's look for signals and a long sleep would not end the sleep.
    source = "import time\ntry:\n    print('ready', flush=True)\n    while True: time.sleep(0.01)\nexcept KeyboardInterrupt:\n    print('caught')\n    raise SystemExit(5)"
    code, out, _, report = terminated(python, source, signal.SIGINT)
    assert (code, out, report["exit_code"]) == (5, b"caught\n", 5)
