"""`dpmem plan` as a user calls it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmem import _plan_command

MODULE = """
import dpnp
print("imported")
def square(x):
    print("called")
    return x**2
def add(x, y):
    return x + y
def broken(x):
    raise KeyError("of the program")
class Jobs:
    @staticmethod
    def rows(x):
        return dpnp.sum(x, axis=1)
number = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work.py").write_text(MODULE)
    (tmp_path / "bad.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    for n in range(2):
        np.save(tmp_path / f"part{n}.npy", np.ones((5000, 8)))
    return tmp_path


def dpmem(folder, *words):
    command = [str(Path(sys.prefix) / "bin/dpmem"), "plan", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_text_and_json(folder):
    text = dpmem(folder, "work:square", "part0.npy")
    assert text.returncode == 0, text.stderr
    assert text.stdout.startswith("square: 8 chunks of 625 rows on opencl:cpu:0\n")
    assert "imported" in text.stderr
    assert "called" in text.stderr
    found = dpmem(folder, "work:Jobs.rows", "part*.npy", "--json", "--budget", "0.25", "--device", "cpu")
    assert found.returncode == 0, found.stderr
    plan = json.loads(found.stdout)
    assert (plan["total_rows"], plan["row_bytes"], plan["budget"], plan["chunks"]) == (10_000, 64, 0.25, 8)
    assert plan["rows"] * plan["chunks"] >= 10_000
    assert {"peak_bytes", "free_bytes", "free_source", "max_alloc_bytes", "reasons", "device"} <= plan.keys()


@pytest.mark.parametrize(
    ("name", "source", "device", "text"),
    [
        ("nowhere:f", "part0.npy", None, "no module `nowhere`"),
        ("work:absent", "part0.npy", None, "`work` has no `absent`"),
        ("work:number", "part0.npy", None, "no function, it is int"),
        ("bad:f", "part0.npy", None, "`bad` can't be imported: No module named 'nothing_of_that_name'"),
        ("raises:f", "part0.npy", None, "`raises` can't be imported: ZeroDivisionError: division by zero"),
        ("exits:f", "part0.npy", None, "`exits` can't be imported: SystemExit: 3"),
        ("work:square", "missing.npy", None, "`missing.npy`: No such file or directory; expected a .npy file"),
        ("work:square", ".", None, "`.`: Is a directory; expected a .npy file"),
        ("work:square", "none*.npy", None, "none*.npy"),
        ("work:square", "work.py", None, "no .npy file"),
        ("work:square", "part0.npy", "nowhere:3", "no device `nowhere:3`; `dpmem devices` lists"),
        ("work:broken", "part0.npy", None, "work:broken failed on a part of the data"),
        ("work:add", "part0.npy", None, "add() missing 1 required positional argument"),
    ],
)
def test_what_cannot_be_done_ends_with_2_and_a_reason(folder, monkeypatch, capfd, name, source, device, text):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    module, function = name.split(":")
    words = {"module": module, "function": function, "source": source, "device": device}
    assert _plan_command.run(**words, budget=0.6, as_json=False) == 2
    sys.modules.pop("work", None)
    said = capfd.readouterr()
    assert said.out == ""
    assert text in said.err
    assert ("Traceback" in said.err) == (name in ("bad:f", "raises:f", "exits:f", "work:broken"))


def test_the_process_ends_with_2(folder):
    for words in (["work:broken", "part0.npy"], ["work", "part0.npy"]):
        ended = dpmem(folder, *words)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr


def test_an_interrupt_ends_it_without_a_traceback(folder):
    # Not one long wait: an interrupt that comes just before a read is only looked at after it.
    (folder / "work.py").write_text(
        "import sys, time\n"
        "def wait(x):\n"
        "    print('waits', file=sys.stderr, flush=True)\n"
        "    for _ in range(6000): time.sleep(0.01)\n"
    )
    command = [str(Path(sys.prefix) / "bin/dpmem"), "plan", "work:wait", "part0.npy"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    said = ""
    # A shell without job control has what it starts in the background ignore interrupts.
    interruptible = ["env", "--default-signal=INT", *command]
    with subprocess.Popen(interruptible, cwd=folder, text=True, **pipes) as process:
        while "waits" not in said and (more := process.stderr.read(1)):
            said += more
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert "waits" in said
    assert (process.returncode, "Traceback" in said + rest) == (130, False)


def test_a_device_that_is_too_small(folder, opencl_only):
    np.save(folder / "wide.npy", np.ones((2, 1 << 20)))
    machine = opencl_only.having("name=Tiny;mem=16MiB").setting(PYTHONPATH=str(folder))
    ended = machine.dpmem("plan", "work:square", folder / "wide.npy")
    assert ended.exit_code == 2
    assert "not even one row" in ended.stderr
    assert "Traceback" not in ended.stderr
