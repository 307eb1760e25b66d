"""Programs that really use a device: interrupted, spawning, forking, leaving in the middle of work."""

# ruff: noqa: E501 (whole programs on a line)

import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.dpnp


@pytest.fixture
def run(tmp_path, package):
    def run(source, *options, ready=None):
        (tmp_path / "script.py").write_text(source)
        environment = {**os.environ, "PYTHONPATH": str(package)}
        command = [sys.executable, "-m", "dpmem", "run", "--json", "r.json", *options, "script.py"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=-1, stderr=-1, text=True) as process:
            if ready:
                assert process.stdout.readline() == "ready\n"
                process.send_signal(ready)
            out, err = process.communicate(timeout=180)
        reports = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("r.json*")}
        return process.returncode, out, err, reports

    return run


def device_bytes(report):
    return sum(row["current_bytes"] for row in report["usm"] if row["kind"] == "device")


BUSY = "import dpnp\nx = dpnp.ones((1200, 1200))\nprint('ready', flush=True)\nwhile True: y = x @ x"


def test_terminated_while_it_computes(run):
    code, _, err, reports = run(BUSY, ready=signal.SIGTERM)
    assert code == -signal.SIGTERM, err
    assert reports["r.json"]["exit_code"] == -signal.SIGTERM
    assert device_bytes(reports["r.json"]) >= 1200 * 1200 * 8


def test_interrupted_while_it_computes(run):
    code, _, err, reports = run(BUSY, ready=signal.SIGINT)
    assert code == -signal.SIGINT, err
    assert "KeyboardInterrupt" in err
    assert reports["r.json"]["exit_code"] == -signal.SIGINT


@pytest.mark.parametrize("end", ["", "os._exit(7)", "sys.exit(7)", "1/0"])
def test_left_with_work_queued(run, end):
    source = f"import dpnp, os, sys\nx = dpnp.ones((1000, 1000))\nfor _ in range(5): y = x @ x\n{end}"
    code, _, err, reports = run(source)
    assert code == {"": 0, "1/0": 1}.get(end, 7), err
    assert device_bytes(reports["r.json"]) >= 2 * 8_000_000


def test_spawned_children_report_their_own_memory(run):
    code, out, err, reports = run(
        "import multiprocessing\n"
        "def f(n):\n    import dpnp\n    global kept\n    kept = dpnp.ones(n)\n    return float(kept.sum())\n"
        "if __name__ == '__main__':\n    pool = multiprocessing.get_context('spawn').Pool(1)\n    print(pool.apply(f, (1_000_000,)))\n    pool.close(); pool.join()\n"
    )
    assert (code, out) == (0, "1000000.0\n"), err
    child = next(report for name, report in reports.items() if name != "r.json")
    assert len(reports) == 2
    assert device_bytes(child) == 8_000_000
    assert device_bytes(reports["r.json"]) == 0


def test_a_child_forked_before_the_first_use_computes_and_records_nothing(run):
    code, out, err, reports = run(
        "import os, dpnp\npid = os.fork()\nx = dpnp.ones(1000)\nif pid == 0:\n    assert float(x.sum()) == 1000\n    raise SystemExit(3)\nprint(os.waitpid(pid, 0)[1] >> 8)\n"
    )
    assert (code, out) == (0, "3\n"), err
    assert list(reports) == ["r.json"]
    assert device_bytes(reports["r.json"]) == 8000


def test_a_child_forked_after_the_first_use_leaves(run):
    # Any further SYCL call in such a child hangs, with plain python too; os._exit makes none.
    code, out, err, reports = run(
        "import os, dpnp\nx = dpnp.ones(1000)\nprint(float(x.sum()), flush=True)\npid = os.fork()\nif pid == 0: os._exit(3)\nprint(os.waitpid(pid, 0)[1] >> 8)\n"
    )
    assert (code, out) == (0, "1000.0\n3\n"), err
    assert list(reports) == ["r.json"]
