"""What a program finds when it starts."""

# ruff: noqa: E501 (whole programs on a line)

import os
import sys

import pytest

DESCRIBE = """\
import sys, os
for name, value in list(globals().items()):
    print(name, type(value), value if isinstance(value, (str, type(None), dict)) else "")
print(__loader__ if isinstance(__loader__, type) else (__loader__.__class__, getattr(__loader__, "name", 0), getattr(__loader__, "path", 0)))
if __spec__ is not None:
    print(__spec__.name, __spec__.origin, __spec__.parent, __spec__.cached, __spec__.has_location, __spec__.loader is __loader__)
print(sys.argv, sys.path, os.getcwd())
print(sys.modules["__main__"].__dict__ is globals(), list(sys.modules["__main__"].__dict__) == list(globals()))
print(sys.flags, sys.warnoptions, sys._xoptions, sys.executable, sys.gettrace(), sys.getprofile())
print(sys.excepthook is sys.__excepthook__, sys.stdout is sys.__stdout__, sys.exc_info(), hasattr(sys, "last_value"))
import signal, threading
print([signal.getsignal(n) for n in sorted(signal.valid_signals())])
print(len(threading.enumerate()), threading.current_thread() is threading.main_thread())
print(sorted(os.environ.items()))
print(sorted(map(int, os.listdir("/proc/self/fd")))[:-1], len(os.listdir("/proc/self/task")))
"""


def test_everything_a_program_sees(python):
    python.same_everywhere(DESCRIBE, "one", "--json", "-m", "--", "")


@pytest.mark.parametrize("flags", [["-X", "dev"], ["-O"], ["-W", "error"], ["-s", "-E", "-B"], ["-u"]])
def test_interpreter_options(python, flags):
    if "-E" in flags and python.path != sys.executable:
        pytest.skip("dpmem is found through PYTHONPATH here")
    python.write("script.py", DESCRIBE)
    python.same("script.py", flags=flags)


def test_safe_path(python):
    if python.version < (3, 11):
        pytest.skip("-P came with 3.11")
    for env, flags in ({"PYTHONSAFEPATH": "1"}, ()), ({}, ["-P"]):
        python.write("script.py", DESCRIBE)
        python.write("folder/__main__.py", DESCRIBE)
        python.same("script.py", env=env, flags=flags)
        python.same("folder", env=env, flags=flags)
        python.same("-c", DESCRIBE, env=env, flags=flags)


def test_paths_as_they_were_typed(python):
    python.write("sub/script.py", DESCRIBE)
    python.write("sub/deep/x", "")
    (python.folder / "link.py").symlink_to("sub/script.py")
    (python.folder / "absolute-link.py").symlink_to(python.folder / "sub/script.py")
    (python.folder / "folder-link").symlink_to("sub")
    for path in (
        "./sub/script.py",
        "sub/../sub/./script.py",
        python.folder / "sub/script.py",
        "link.py",
        "absolute-link.py",
        "folder-link/script.py",
    ):
        python.same(path)
    python.same("../script.py", cwd=python.folder / "sub/deep")


def test_modules_beside_the_script_are_found(python):
    python.write("sub/neighbour.py", "value = 7")
    python.write("sub/script.py", "import neighbour; print(neighbour.__file__, neighbour.value)")
    python.same("sub/script.py")


def test_no_module_is_loaded_before_its_time(python):
    python.write("listing.py", "import sys; print(sorted(n for n in sys.modules if n.split('.')[0] != 'dpmem'))")
    built_in = eval(python.run("-c", "import sys; print(sys.builtin_module_names)", dpmem=False).stdout)
    # Under dpmem only what `python -m` needs, here for dpmem itself, and what no file of the program can stand in for.
    plain = eval(python.run("-m", "listing", dpmem=False).stdout)
    ours = eval(python.run("listing.py", options=["--no-summary"]).stdout)
    assert set(ours) - set(plain) - set(built_in) <= {"__future__"}


def test_modules_of_the_program_shadow_the_standard_library(python):
    for name in (
        "datetime",
        "json",
        "queue",
        "random",
        "traceback",
        "dataclasses",
        "typing",
        "ctypes",
        "shutil",
    ):
        python.write(f"{name}.py", f"print('own {name}')")
    python.write("script.py", "import datetime, json, queue, random, traceback, dataclasses, typing, ctypes, shutil")
    plain, _ = python.same("script.py")
    assert plain.stdout.count(b"own") == 9


def test_standard_input(python):
    source = "import sys; print([line for line in sys.stdin]); print(sys.stdin.read())"
    python.write("script.py", source)
    python.same("script.py", input=b"one\ntwo\n")
    python.same("-c", source, input=b"one\ntwo\n")
    python.same("-c", "print(input())", input=b"")


def test_program_from_standard_input(python):
    python.same(
        "-",
        "a",
        "b",
        input=b"import sys\nprint(sys.argv, sys.path[0], list(globals()), __file__, type(__loader__))\n1/0\n",
    )


def test_sources_of_every_kind(python):
    python.write("empty.py", "")
    python.same("empty.py")
    (python.folder / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n")
    python.same("latin.py")
    (python.folder / "bom.py").write_bytes(b"\xef\xbb\xbfprint('bom')\n")
    python.same("bom.py")
    (python.folder / "crlf.py").write_bytes(b"print('a')\r\nprint('''b\r\nc''')\r\n")
    python.same("crlf.py")
    python.write("no suffix", "print(__file__)")
    python.same("no suffix")
    python.write("future.py", "from __future__ import annotations\ndef f(x: y): pass\nprint(f.__annotations__)")
    python.same("future.py")
    # our own `from __future__` must not reach the program
    python.write("present.py", "def f(x: int): pass\nprint(f.__annotations__)")
    python.same("present.py")
    python.write("doc.py", "'''A docstring.'''\nprint(__doc__)")
    python.same("doc.py")


def test_compiled_files(python):
    python.write("script.py", "import sys\nprint(__name__, __file__, type(__loader__), sys.argv)\nprint(1/0)")
    python.run("-m", "compileall", "-q", "-b", "script.py", dpmem=False, env={"PYTHONDONTWRITEBYTECODE": ""})
    (python.folder / "script.py").unlink()
    python.same("script.pyc", "x")
    (python.folder / "bad.pyc").write_bytes(b"\0" * 40)
    python.same("bad.pyc")


def test_pickle_and_source_of_main(python):
    source = (
        "import pickle, inspect\nclass C:\n    def __eq__(self, other): return type(self) is type(other)\n"
        "def f():\n    return 1  # a comment\n"
        "print(pickle.loads(pickle.dumps(C())) == C(), pickle.loads(pickle.dumps(f)) is f, C)\n"
        "print(inspect.getsource(f))\nprint(inspect.getfile(C))\n"
    )
    python.write("script.py", source)
    python.write("folder/__main__.py", source)
    python.same("script.py")
    python.same("-m", "script")
    python.same("folder")
    python.same("-c", source)


def test_runpy_inside(python):
    python.write("inner.py", "import sys; print(__name__, sys.argv); x = 1")
    python.write(
        "script.py",
        "import runpy; print(runpy.run_path('inner.py', run_name='__main__')['x']); print(runpy.run_module('inner')['x'])",
    )
    python.same("script.py")


def test_changed_folder_and_environment(python):
    python.write("script.py", "import os\nos.chdir('/')\nos.environ['X'] = '1'\nprint(os.getcwd())\nos.umask(0o77)")
    python.same("script.py")


def test_recursion(python):
    python.write(
        "script.py",
        "def f(n): return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError as e: print(e)\nimport sys; print(sys.getrecursionlimit())",
    )
    python.same("script.py")


def test_words_that_are_no_unicode(python):
    name = os.fsdecode(b"odd-\xff.py")
    python.write(name, "import sys, os; print(list(map(os.fsencode, sys.argv)))")
    python.same(name, os.fsdecode(b"\xfe"))


@pytest.mark.parametrize(
    "program",
    [
        ["missing.py"],
        ["-m", "missing"],
        ["-m", "missing.part"],
        ["-m", "os.path.x"],
        ["empty"],
        ["-m", "package"],
    ],
)
def test_programs_that_are_not_there(python, program):
    (python.folder / "empty").mkdir()
    python.write("package/__init__.py", "")
    if program == ["missing.py"]:
        plain = python.run(*program, dpmem=False)
        done = python.run(*program)
        assert done.stderr.decode() == plain.stderr.decode().replace(python.path, "dpmem")
        assert (done.returncode, done.stdout) == (plain.returncode, b"") == (2, b"")
    else:
        python.same(*program)


def test_three_point_fourteen_dedents():
    from dpmem._program import _dedented

    assert _dedented("\n    import sys\n    if 1:\n        x\n\t\n") == "\nimport sys\nif 1:\n    x\n\n"
    assert _dedented("x\n  y") == "x\n  y"
