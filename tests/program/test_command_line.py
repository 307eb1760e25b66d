"""The executable itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def dpmem():
    console_script = Path(sys.executable).with_name("dpmem")

    def run(*words, **keywords):
        environment = {**os.environ, "OCL_ICD_VENDORS": "/etc/OpenCL/vendors", **keywords.pop("env", {})}
        return subprocess.run(
            [console_script, *words], capture_output=True, text=True, timeout=60, env=environment, **keywords
        )

    return run


def answer(python, *words):
    process = subprocess.run(
        [python.path, "-m", "dpmem", *words],
        env=python.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return process.returncode, process.stdout, process.stderr


def test_version_and_help_are_data(python):
    code, out, err = answer(python, "--version")
    assert (code, err) == (0, "")
    assert out.startswith("dpmem ")
    code, out, err = answer(python, "run", "--help")
    assert (code, err) == (0, "")
    assert "dpmem run [OPTIONS] (SCRIPT | -m MODULE | -c CODE) [ARGS]..." in out


@pytest.mark.parametrize(
    "words", [[], ["run"], ["rum"], ["run", "--pol", "x.py"], ["run", "--stack-depth", "1000", "x.py"]]
)
def test_nonsense_is_refused(python, words):
    code, out, err = answer(python, *words)
    assert (code, out) == (2, "")
    assert "dpmem" in err
    assert "Traceback" not in err


def test_the_console_script_runs_programs(dpmem, tmp_path):
    (tmp_path / "script.py").write_text(
        "import sys, traceback\nprint(sys.argv, sys.path[0])\ntraceback.print_stack()\nsys.exit(3)"
    )
    done = dpmem("run", "--no-summary", "script.py", "--no-summary", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stdout == f"{['script.py', '--no-summary']} {tmp_path}\n"
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert len(frames) == 3, "the console script, main, the program"


def test_the_console_script_dies_by_an_interrupt(dpmem):
    done = dpmem("run", "-c", "raise KeyboardInterrupt")
    assert done.returncode == -2
    assert done.stderr.startswith('Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n')


def test_a_spawned_child_of_the_console_script(dpmem, tmp_path):
    (tmp_path / "script.py").write_text(
        "import multiprocessing\nif __name__ == '__main__':\n"
        "    p = multiprocessing.get_context('spawn').Process(target=print, args=('x',))\n    p.start()\n    p.join()\n"
    )
    done = dpmem("run", "--json", "r.json", "script.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert len(list(tmp_path.glob("r.json*"))) == 2
