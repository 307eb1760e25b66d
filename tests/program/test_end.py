"""How a program ends: exit codes, exceptions, interrupts, threads, clean-up, and where the report comes in."""

# ruff: noqa: E501 (whole programs on a line)

import json
import os
import re
import signal
import subprocess

import pytest

EXITS = [
    "",
    "None",
    "0",
    "1",
    "255",
    "256",
    "-1",
    "3.5",
    "True",
    "2**40",
    "2**70",
    "'text'",
    "''",
    "('a', 1)",
    "b'x'",
    "'caf\\xe9'",
]


@pytest.mark.parametrize("value", EXITS)
def test_exit_codes(python, value):
    python.write("script.py", f"import sys\nprint('before')\nsys.exit({value})")
    python.same("script.py")


@pytest.mark.parametrize(
    "source",
    [
        "raise SystemExit",
        "raise SystemExit(1, 2)",
        "class E(SystemExit): code = 7\nraise E(3)",
        "class E(SystemExit):\n    @property\n    def code(self): raise ValueError\nraise E('odd')",
        "import sys; sys.stderr = None; sys.exit('lost')",
        "exit(4)",
        "import sys\nsys.stdout = None\nsys.exit(3)",
        "import sys\nsys.stderr.close()\nsys.exit('text')",
        "try:\n    raise SystemExit(5)\nfinally:\n    print('finally')",
    ],
)
def test_odd_exits(python, source):
    python.same("-c", source)


EXCEPTIONS = {
    "plain": "def f():\n    return 1 / 0\nf()",
    "context": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['missing']",
    "cause": "def f(): raise KeyError('a')\ntry:\n    f()\nexcept KeyError as e:\n    raise ValueError('b') from e",
    "suppressed": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError from None",
    "syntax": "print('never')\nfor x in y\n    pass",
    "indentation": "if 1:\npass",
    "inner syntax": "compile('a b', 'inner', 'exec')",
    "eval": "eval('1/0')",
    "no text": "raise Exception",
    "unprintable": "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "base": "class E(BaseException): pass\nraise E('x')",
    "generator exit": "raise GeneratorExit",
    "import": "import does_not_exist",
    "name": "prnt('x')",
    "assertion": "assert 1 == 2, 'no'",
    "own frames named like ours": "def main(): raise ValueError\ndef run(): main()\nrun()",
    "library": "import json\njson.loads('{')",
    "thread": "import threading\nthreading.Thread(target=lambda: 1/0, name='T').start()",
    "unraisable": "class C:\n    def __del__(self): 1 / 0\nC()",
    "memory": "raise MemoryError",
    "unicode": "raise ValueError('\\udce9 é 漢')",
    "many": "import asyncio\nasync def f(): 1 / 0\nasyncio.run(f())",
}


@pytest.mark.parametrize("source", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_exceptions(python, source):
    python.write("script.py", source)
    python.same("script.py")
    python.write("module.py", source)
    python.same("-m", "module")
    python.same("-c", source)


def test_recursion_error(python):
    # The frames under the program are the one difference: six levels with `python -m dpmem`, fewer with the console script.
    python.write("script.py", "def f(): f()\nf()")
    texts = []
    for dpmem in False, True:
        error = python.run("script.py", dpmem=dpmem, options=["--no-summary"]).stderr.decode()
        depth = int(re.search(r"repeated (\d+) more times", error)[1])
        texts.append((depth, error.replace(str(depth), "N")))
    assert texts[0][1] == texts[1][1]
    assert 0 <= texts[0][0] - texts[1][0] <= 6


def test_exception_groups(python):
    if python.version >= (3, 11):
        python.same("-c", "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])")


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.excepthook = lambda *a: print('hook', a[0], a[2].tb_frame.f_code.co_name, a[2].tb_next, sys.exc_info())\n1/0",
        "import sys\nsys.excepthook = lambda t, v, b: 1/0\nraise KeyError",
        "import sys\nsys.excepthook = lambda t, v, b: print(sys.last_type, sys.last_value, sys.last_traceback is b)\n1/0",
        "import sys\ndel sys.excepthook\n1/0",
        "import sys\nsys.excepthook = None\n1/0",
        "import sys\nsys.stderr = sys.stdout\n1/0",
        "import sys, io\nsys.stderr = io.StringIO()\n1/0",
        "import sys\nsys.stderr = None\n1/0",
        "import sys, atexit\natexit.register(lambda: print(sys.exc_info(), sys.last_value, hasattr(sys, 'last_exc')))\n1/0",
        "import sys\nsys.excepthook = lambda *a: print(sys.excepthook)\n1/0",
        "import faulthandler; faulthandler.enable(); 1/0",
        "import sys\nsys.tracebacklimit = 0\ndef f(): 1/0\nf()",
    ],
)
def test_exception_hooks(python, source):
    python.write("script.py", source)
    python.same("script.py")


def test_a_hook_that_exits(python):
    python.write("script.py", "import sys\nsys.excepthook = lambda *a: sys.exit(9)\n1/0")
    plain, _ = python.same("script.py")
    assert (plain.returncode, plain.stderr) == (9, b"")
    python.same("-c", "import sys\nsys.excepthook = lambda *a: sys.exit('text')\n1/0")


INTERRUPTED = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)"


@pytest.mark.parametrize(
    "source",
    [
        INTERRUPTED,
        "raise KeyboardInterrupt",
        "class K(KeyboardInterrupt): pass\nraise K",
        "import sys\nsys.excepthook = lambda *a: print('hook')\n" + INTERRUPTED,
        "import atexit\natexit.register(print, 'clean-up')\nprint('no newline', end='')\n" + INTERRUPTED,
        "try:\n    raise KeyboardInterrupt\nexcept KeyboardInterrupt:\n    print('caught')",
    ],
)
def test_interrupts(python, source):
    python.write("script.py", source)
    python.write("module.py", source)
    python.same("script.py")
    python.same("-m", "module")
    python.same("-c", source)


def test_interrupt_from_outside(python):
    python.write("script.py", "import time\nprint('ready', flush=True)\ntime.sleep(60)")
    results = []
    for dpmem in False, True:
        with python.start("script.py", dpmem=dpmem, options=["--no-summary"]) as process:
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
            results.append((process.returncode, out, err.splitlines()[-1]))
    assert results[0] == results[1] == (-signal.SIGINT, b"", b"KeyboardInterrupt")


def test_order_of_the_end(python):
    source = """
import atexit, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
class C:
    def __del__(self): print('global destroyed', flush=True)
kept = C()
atexit.register(print, 'registered first')
def late():
    time.sleep(0.2)
    print('thread done')
    atexit.register(print, 'registered by a thread')
threading.Thread(target=late).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
pool = ThreadPoolExecutor(1)
pool.submit(lambda: (time.sleep(0.1), print('pool done')))
atexit.register(print, 'registered last')
print('main done')
"""
    plain = python.same_everywhere(source)
    assert plain.stdout.splitlines()[0] == b"main done"
    assert plain.stdout.splitlines()[-1] == b"global destroyed"


def test_the_report_comes_before_clean_up_and_the_summary_last(python):
    report = python.folder / "report.json"
    source = f"""
import atexit, os, sys, threading, time
path = {str(report)!r}
threading.Thread(target=lambda: (time.sleep(0.2), print('thread sees report:', os.path.exists(path)))).start()
atexit.register(lambda: print('clean-up sees report:', os.path.exists(path)))
class C:
    def __del__(self): print('last of all')
kept = C()
print('main sees report:', os.path.exists(path))
"""
    python.write("script.py", source)
    done = python.run("script.py", options=["--json", report], stderr=subprocess.STDOUT)
    lines = done.stdout.decode().splitlines()
    assert lines[:4] == [
        "main sees report: False",
        "thread sees report: False",
        "clean-up sees report: True",
        "last of all",
    ]
    assert len(lines) > 4, "the summary follows"


def test_threads_cannot_do_more_than_without(python):
    # From 3.12 on a thread that outlives main may start no other.
    python.write(
        "script.py",
        "import threading, time\ndef f():\n    time.sleep(0.2)\n    threading.Thread(target=print, args=('x',)).start()\nthreading.Thread(target=f, name='T').start()",
    )
    python.same("script.py")


def test_thread_that_is_interrupted_while_waited_for(python):
    python.write(
        "script.py",
        "import threading, os, signal, time\nthreading.Thread(target=lambda: (time.sleep(0.3), os.kill(os.getpid(), signal.SIGINT), time.sleep(0.3))).start()",
    )
    python.same("script.py")


def test_exceptions_in_clean_up(python):
    python.same("-c", "import atexit\n@atexit.register\ndef f(): 1/0")
    python.same("-c", "import atexit, sys\n@atexit.register\ndef f(): sys.exit(3)")


def test_clean_up_run_by_hand(python):
    python.same(
        "-c",
        "import atexit\natexit.register(print, 1)\natexit._run_exitfuncs()\natexit.register(print, 2)\natexit._clear()\natexit.register(print, 3)",
    )


@pytest.mark.parametrize("status", [0, 7, 256, -1])
def test_exit_without_clean_up(python, status):
    source = (
        f"import os, atexit\natexit.register(print, 'never')\nprint('lost')\nos.write(1, b'kept')\nos._exit({status})"
    )
    python.same("-c", source)
    python.same(
        "-c",
        "import os, threading, time\nthreading.Thread(target=lambda: os._exit(3)).start()\ntime.sleep(30)",
    )
    done = python.run("-c", source)
    assert done.stderr.decode().strip(), "the summary is written all the same"


def test_exit_without_clean_up_in_clean_up(python):
    source = "import os, atexit\natexit.register(os._exit, 5)"
    plain = python.run("-c", source, dpmem=False)
    done, report = python.recorded("-c", source, options=())
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (5, b"")
    assert report["exit_code"] == 0
    assert done.stderr.strip(), "the summary"


def test_bad_calls_of_exit(python):
    python.same(
        "-c",
        "import os, posix\nprint(os._exit is posix._exit, os._exit.__name__, os._exit.__module__)\ntry:\n    os._exit('x')\nexcept TypeError: print('refused')\nos._exit(status=3)",
    )


def test_a_program_that_kills_itself(python):
    for number in signal.SIGKILL, signal.SIGABRT, signal.SIGUSR1, signal.SIGALRM:
        source = f"import os\nos.kill(os.getpid(), {int(number)})"
        assert python.run("-c", source).returncode == python.run("-c", source, dpmem=False).returncode == -number


def test_a_program_that_replaces_itself(python):
    source = "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(1); import sys; sys.exit(6)'])"
    plain, done = (python.run("-c", source, dpmem=dpmem) for dpmem in (False, True))
    assert (
        (done.returncode, done.stdout, done.stderr)
        == (plain.returncode, plain.stdout, plain.stderr)
        == (6, b"1\n", b"")
    )


def test_output_that_nobody_reads(python):
    python.write("quiet.py", "import time; time.sleep(0.2)")
    python.write("loud.py", "import sys\nprint('x' * 200000)\nsys.exit(3)")
    for script in "quiet.py", "loud.py":
        results = []
        for dpmem in False, True:
            read, write = os.pipe()
            os.close(read)
            with python.start(script, dpmem=dpmem, options=["--json", "-", "--no-summary"], stdout=write) as process:
                os.close(write)
                _, err = process.communicate(timeout=30)
                results.append((process.returncode, err))
        assert results[0] == results[1]


def test_nobody_reads_the_summary(python):
    for descriptor in "stderr", "stdout":
        read, write = os.pipe()
        os.close(read)
        with python.start(
            "-c",
            "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)",
            options=["--json", "-"],
            **{descriptor: write},
        ) as process:
            os.close(write)
            process.communicate(timeout=30)
            assert process.returncode == 0


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "0<&-", "1>&- 2>&-"])
def test_streams_that_are_closed_from_the_start(python, closed):
    python.write(
        "script.py",
        "import os, sys\nf = open('data', 'w')\nprint(f.fileno(), file=f)\nf.write(repr((sys.stdin is None, sys.stdout is None, sys.stderr is None)))\nf.flush()\nos.dup2(f.fileno(), f.fileno())\nimport atexit\natexit.register(lambda: f.fileno())\nimport time\nsys.modules['keep'] = f",
    )
    contents = []
    for dpmem in False, True:
        command = subprocess.list2cmdline(python.words("script.py", dpmem=dpmem, options=["--json", "-"]))
        done = subprocess.run(
            ["sh", "-c", f"{command} {closed}"],
            cwd=python.folder,
            env=python.environment,
            capture_output=True,
            timeout=60,
        )
        contents.append((done.returncode, (python.folder / "data").read_text()))
    (plain_code, plain), (code, seen) = contents
    assert plain == seen
    # A report that was asked for on a standard output that isn't there is what dpmem could not do.
    assert (plain_code, code) == (0, 2 if "1>&-" in closed else 0)


def test_streams_that_the_program_replaced_are_left_alone(python):
    python.write(
        "script.py",
        "import os\nf = os.open('theirs', os.O_CREAT | os.O_WRONLY)\nos.dup2(f, 1)\nos.dup2(f, 2)\nos.write(1, b'data')",
    )
    python.run("script.py", options=["--json", "-"])
    assert (python.folder / "theirs").read_bytes() == b"data"


def test_twenty_runs_in_a_row(python):
    for _ in range(20):
        done, _ = python.recorded("-c", "import threading; threading.Thread(target=print, args=(1,)).start()")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")


def test_many_warnings_are_errors(python):
    python.same(
        "-c",
        "import threading, concurrent.futures, multiprocessing, subprocess, os; print(os.fork() and os.wait()[1])",
        flags=["-W", "error"],
    )


def test_json_on_standard_output_is_the_last_line(python):
    done = python.run(
        "-c", "import atexit\natexit.register(print, 'bye', end='')\nprint('hello')", options=["--json", "-"]
    )
    lines = done.stdout.decode().split("\n")
    assert lines[0] == "hello"
    assert lines[1].startswith("bye")
    assert json.loads(lines[-2].removeprefix("bye"))["exit_code"] == 0
    assert lines[-1] == ""
