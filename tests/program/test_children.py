"""Forked children record nothing and behave as ever; spawned children record themselves."""

# ruff: noqa: E501 (whole programs on a line)

import json
import signal

import pytest


def reports(python):
    found = {}
    for path in python.folder.glob("report.json.*"):
        found[int(path.suffix[1:])] = json.loads(path.read_text())
    return found


FORKS = {
    "falls off the end": "pid = os.fork()\nif pid: print(os.wait()[1])\nprint('child' if pid == 0 else 'parent', flush=True)",
    "exits": "pid = os.fork()\nif pid == 0: sys.exit(3)\nprint(os.wait()[1])",
    "leaves at once": "pid = os.fork()\nif pid == 0: os._exit(3)\nprint(os.wait()[1])",
    "raises": "pid = os.fork()\nif pid == 0: raise ValueError('x')\nprint(os.wait()[1])",
    "is interrupted": "pid = os.fork()\nif pid == 0: raise KeyboardInterrupt\nprint(os.wait()[1])",
    "is terminated": "pid = os.fork()\nif pid == 0:\n    while True: signal.pause()\nos.kill(pid, 15)\nprint(os.wait()[1])",
    "terminates itself": "pid = os.fork()\nif pid == 0:\n    os.kill(os.getpid(), 15)\n    os._exit(9)\nprint(os.wait()[1])",
    "has clean-up": "atexit.register(print, 'clean-up')\npid = os.fork()\nif pid == 0: sys.exit(0)\nprint(os.wait()[1])",
    "forks again": "if os.fork() == 0:\n    if os.fork() == 0: sys.exit(1)\n    sys.exit(os.wait()[1] >> 8)\nprint(os.wait()[1])",
    "replaces itself": "pid = os.fork()\nif pid == 0: os.execv('/bin/sh', ['sh', '-c', 'exit 4'])\nprint(os.wait()[1])",
    "outlives": "pid = os.fork()\nif pid == 0:\n    time.sleep(0.3)\n    print('late')\n",
    "in a thread": "def f():\n    pid = os.fork()\n    if pid == 0: os._exit(2)\n    print(os.wait()[1])\nt = threading.Thread(target=f)\nt.start()\nt.join()",
}


@pytest.mark.parametrize("source", FORKS.values(), ids=FORKS)
@pytest.mark.parametrize("options", [["--no-summary"], ["--json", "-"]], ids=["file", "stdout"])
def test_forked(python, source, options):
    source = "import atexit, os, signal, sys, threading, time, warnings\nwarnings.simplefilter('ignore')\n" + source
    if options == ["--no-summary"]:
        python.same("-c", source)
    else:
        plain = python.run("-c", source, dpmem=False)
        done = python.run("-c", source, options=options)
        assert done.returncode == plain.returncode
        lines = done.stdout.decode().splitlines(keepends=True)
        assert sum(line.startswith("{") for line in lines) == 1, "one process reports"
        assert sorted(line for line in lines if not line.startswith("{")) == sorted(
            plain.stdout.decode().splitlines(keepends=True)
        )


def test_forked_by_multiprocessing(python):
    python.write(
        "script.py",
        """
import multiprocessing, os, sys, time
def f(n):
    if n == 1: sys.exit(3)
    if n == 2: os._exit(4)
    if n == 3: time.sleep(60)
    if n == 4: raise SystemExit('text')
context = multiprocessing.get_context('fork')
for n in range(5):
    process = context.Process(target=f, args=(n,))
    process.start()
    if n == 3: process.terminate()
    process.join()
    print(n, process.exitcode, flush=True)
with context.Pool(2) as pool:
    print(pool.map(abs, [-1, 2, -3]))
""",
    )
    plain, _ = python.same("script.py")
    assert b"3 -15" in plain.stdout
    assert reports(python) == {}


def test_subprocesses(python):
    python.write(
        "script.py",
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv, sys.modules.get(\"dpmem\")); sys.exit(2)']).returncode)\n"
        "p = subprocess.Popen(['sleep', '60'], preexec_fn=lambda: None)\np.terminate()\nprint(p.wait())\n"
        "print(subprocess.check_output('echo hi', shell=True))\n",
    )
    python.same("script.py", env={"PYTHONUNBUFFERED": "1"})


SPAWNED = """
import multiprocessing, os, sys, time
def f(n, ready):
    print('child', n, __name__, sys.argv, flush=True)
    if n == 1: sys.exit(3)
    if n == 2: raise ValueError('x')
    if n == 3:
        ready.set()
        time.sleep(60)
    if n == 4: os._exit(5)
if __name__ == '__main__':
    context = multiprocessing.get_context('spawn')
    ready = context.Event()
    for n in range(5):
        process = context.Process(target=f, args=(n, ready))
        process.start()
        if n == 3:
            ready.wait()
            process.terminate()
        process.join()
        print(n, process.exitcode, flush=True)
"""


def test_spawned(python):
    python.write("script.py", SPAWNED)
    plain, _ = python.same("script.py", "argument")
    assert b"3 -15" in plain.stdout
    children = reports(python)
    assert sorted(report["exit_code"] for report in children.values()) == [-15, 0, 1, 3, 5]
    assert all(report["pid"] == pid for pid, report in children.items())
    python.same("-m", "script", "argument")
    assert len(reports(python)) == 10


def test_spawned_without_a_report_file(python):
    python.write("script.py", SPAWNED.replace("range(5)", "range(2)"))
    plain = python.run("script.py", dpmem=False)
    done = python.run("script.py")
    assert done.stdout == plain.stdout
    assert done.stderr.count(b"summary") <= 1
    done = python.run("script.py", options=["--json", "-", "--no-summary"])
    *lines, last = done.stdout.splitlines(keepends=True)
    assert b"".join(lines) == plain.stdout
    assert json.loads(last)["exit_code"] == 0
    assert {path.name for path in python.folder.iterdir()} == {"script.py"}


def test_spawned_pools(python):
    python.write(
        "script.py",
        """
import multiprocessing, concurrent.futures, os
def square(n): return n * n
if __name__ == '__main__':
    context = multiprocessing.get_context('spawn')
    with context.Pool(2) as pool:
        print(pool.map(square, range(5)))
    pool = context.Pool(1)
    print(pool.apply(square, (7,)))
    pool.close()
    pool.join()
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        print(list(executor.map(square, range(5))))
    print(multiprocessing.active_children())
""",
    )
    python.same("script.py")
    children = reports(python)
    # Pool.__exit__ terminates its two; the others leave by themselves. An executor starts one or two.
    assert 4 <= len(children) <= 5
    assert all(report["exit_code"] in (0, -signal.SIGTERM) for report in children.values())


def test_spawned_by_a_spawned_child(python):
    python.write(
        "script.py",
        """
import multiprocessing
def inner(): print('inner', flush=True)
def outer():
    p = multiprocessing.get_context('spawn').Process(target=inner)
    p.start(); p.join()
    print('outer', p.exitcode, flush=True)
if __name__ == '__main__':
    p = multiprocessing.get_context('spawn').Process(target=outer)
    p.start(); p.join()
    print(p.exitcode)
""",
    )
    python.same("script.py")
    names = sorted(path.name for path in python.folder.glob("report.json.*"))
    assert len(names) == 2
    assert names[1].startswith(names[0]), "FILE.PID of the child, FILE.PID.PID of its child"


def test_set_start_method_and_fork_server(python):
    python.write(
        "script.py",
        """
import multiprocessing
def f(q): q.put(('child', __name__))
if __name__ == '__main__':
    for method in 'spawn', 'forkserver', 'fork':
        multiprocessing.set_start_method(method, force=True)
        q = multiprocessing.Queue()
        p = multiprocessing.Process(target=f, args=(q,))
        p.start()
        print(method, q.get())
        p.join()
        print(p.exitcode)
    with multiprocessing.Manager() as manager:
        print(list(manager.list([1, 2])))
""",
    )
    python.same("script.py")


def test_modules_of_multiprocessing_look_untouched(python):
    python.same(
        "-c",
        "import sys\nbefore = list(map(type, sys.meta_path))[-3:]\nimport multiprocessing.spawn as m, inspect\n"
        "print(m.__loader__, m.__spec__.loader is m.__loader__, m.get_command_line.__doc__, m.__file__, before)\n"
        "print(inspect.getsource(m)[:200], [type(f) for f in sys.meta_path][-3:], len(sys.meta_path) - 3)\n",
    )


def test_import_of_multiprocessing_that_fails(python):
    python.write("multiprocessing/__init__.py", "print('own')")
    python.write(
        "script.py",
        "try:\n    import multiprocessing.spawn\nexcept ImportError as e: print(e)\nimport multiprocessing",
    )
    python.same("script.py")
