"""Where the report goes, and what happens when it cannot be made."""

# ruff: noqa: E501 (whole programs on a line)

import json
import os
import threading

import pytest


def test_the_report_names_the_program(python):
    python.write("script.py", "")
    for program in ["script.py", "a", "--json"], ["-m", "script", "b"], ["-c", "pass", "c"], ["-", "d"]:
        _, report = python.recorded(*program)
        assert report["command"] == program


def test_the_file_stays_where_it_was_meant_to_be(python):
    done = python.run("-c", "import os; os.mkdir('sub'); os.chdir('sub')", options=["--json", "r.json", "--no-summary"])
    assert (done.returncode, done.stderr) == (0, b"")
    assert (python.folder / "r.json").exists()
    assert list((python.folder / "sub").iterdir()) == []


def test_an_old_report_is_replaced_in_one_piece(python):
    path = python.folder / "r.json"
    path.write_text("old")
    python.run("-c", "print(open('r.json').read())", options=["--json", "r.json"])
    assert json.loads(path.read_text())["exit_code"] == 0
    assert [path.name for path in python.folder.iterdir()] == ["r.json"]


def test_pipes_and_devices_are_written_as_they_are(python):
    fifo = python.folder / "fifo"
    os.mkfifo(fifo)
    texts = []
    reader = threading.Thread(target=lambda: texts.append(fifo.read_text()))
    reader.start()
    done = python.run("-c", "", options=["--json", "fifo", "--no-summary"])
    reader.join()
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(texts[0])["exit_code"] == 0
    assert python.run("-c", "", options=["--json", "/dev/null", "--no-summary"]).stderr == b""
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize("place", ["missing/r.json", ".", "file/r.json"])
def test_a_place_that_cannot_be_written_stops_before_the_program(python, place):
    python.write("file", "")
    done = python.run("-c", "print('ran')", options=["--json", place])
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"dpmem: cannot write the report to `")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ("pass", 2),
        ("raise SystemExit(3)", 3),
        ("os._exit(0)", 2),
        ("os._exit(4)", 4),
        ("os.kill(os.getpid(), 15)", -15),
    ],
)
def test_a_place_that_vanishes_is_said_and_counts_only_for_a_program_that_succeeded(python, ends, code):
    source = f"import os, atexit\natexit.register(print, 'clean-up')\nos.rmdir('sub')\n{ends}"
    (python.folder / "sub").mkdir()
    done = python.run("-c", source, options=["--json", "sub/r.json", "--no-summary"])
    assert done.returncode == code
    assert done.stderr.count(b"dpmem: cannot write the report to `") == 1
    assert (b"clean-up" in done.stdout) == ("os." not in ends)


@pytest.fixture
def broken(python):
    """Makes the recording fail at one of its two calls."""

    def run(function, source):
        return python.run(
            "-c",
            f"import dpmem._recording as r\ndef {function}(**k): raise RuntimeError('broken on purpose')\nr.{function} = {function}\n{source}",
        )

    return run


@pytest.mark.parametrize(
    ("source", "code"), [("", 2), ("raise SystemExit(5)", 5), ("import os; os._exit(0)", 2), ("1/0", 1)]
)
def test_a_report_that_fails_is_said_in_one_line(broken, source, code):
    done = broken("finish", source)
    assert done.returncode == code
    assert done.stderr.splitlines()[-1] == b"dpmem: no report: RuntimeError: broken on purpose"
    assert done.stderr.count(b"dpmem") == 1


def test_a_recording_that_cannot_start_lets_the_program_run(python):
    # A module of this name is found first and stands in for the real one.
    starter = (
        "import sys, dpmem._recording as r\n"
        "def begin(**k): raise RuntimeError('broken on purpose')\nr.begin = begin\n"
        "from dpmem.__main__ import main\nsys.argv = ['dpmem', 'run', '--no-summary', '-c', 'print(1)']\nsys.exit(main())"
    )
    done = python.run("-c", starter, dpmem=False)
    assert done.stdout == b"1\n"
    assert (
        b"dpmem: recording could not start, the program runs without: RuntimeError: broken on purpose\n" in done.stderr
    )
