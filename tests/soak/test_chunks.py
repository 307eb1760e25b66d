"""The long proofs of planning and mapping: the corpus on all devices, and jobs that are killed at any moment."""

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

PLAN = Path(__file__).parents[1] / "plan"
sys.path.append(str(PLAN))

import corpus

pytestmark = pytest.mark.timeout(3600)
CORPUS, JOB = PLAN / "corpus.py", PLAN / "job.py"
#: Megabytes of data.
SIZES = (3, 24, 160)
EVERYWHERE = [name for name, case in corpus.CASES.items() if not case.cpu_only]


def judge(lines, names, remark, what):
    """No result may be wrong and no peak above the planned one."""
    rows = [json.loads(line) for line in lines]
    assert [row["name"] for row in rows] == list(names)
    assert [row for row in rows if row["wrong"] is not None] == []
    over = [row for row in rows if max(row["used_bytes"], row["reserved_bytes"]) > row["peak_bytes"]]
    assert over == []
    shares = sorted(row["reserved_bytes"] / row["peak_bytes"] for row in rows)
    limited = sum(row["limited_by_memory"] for row in rows)
    told = (
        f"{len(rows)} functions, peak at {shares[0]:.2f} to {shares[-1]:.2f} of the plan, {limited} limited by memory"
    )
    remark(f"corpus, {what}", told)


@pytest.mark.parametrize("megabytes", SIZES)
def test_the_corpus_on_the_cpu(megabytes, remark):
    names = list(corpus.CASES)
    for budget in (0.6, 0.001):
        words = [sys.executable, str(CORPUS), "", str(megabytes), str(budget), *names]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        judge(ended.stdout.splitlines(), names, remark, f"CPU, {megabytes} MB, budget {budget}")


@pytest.mark.parametrize("megabytes", SIZES)
@pytest.mark.parametrize("memory", ["1GiB", "16GiB"])
@pytest.mark.parametrize("name", ["workstation", "opencl_only"])
def test_the_corpus_on_simulated_devices(name, memory, megabytes, request, remark):
    machine = request.getfixturevalue(name).having(f"name=Simulated;mem={memory}")
    for budget in (0.6, {"1GiB": 0.03, "16GiB": 0.002}[memory]):
        ended = machine.run(CORPUS, "", str(megabytes), str(budget), *EVERYWHERE, timeout=1800)
        assert ended.exit_code == 0, ended.stderr
        judge(ended.stdout.splitlines(), EVERYWHERE, remark, f"{name} {memory}, {megabytes} MB, budget {budget}")


@pytest.mark.parametrize("kind", ["map", "transposed", "sum", "own", "both", "concatenate"])
def test_killed_at_random_moments(kind, tmp_path, remark):
    moments = random.Random(kind)
    np.save(tmp_path / "source.npy", np.random.default_rng(8).standard_normal((20_000, 7)))
    command = [sys.executable, str(JOB), str(tmp_path), kind]
    begun = time.monotonic()
    whole = subprocess.run(command, capture_output=True, text=True, check=True)
    took = time.monotonic() - begun
    expected = [line for line in whole.stdout.splitlines() if not line.isdigit()]
    kills = goes_on = 0
    while kills < 20:
        (tmp_path / "out.npy").unlink(missing_ok=True)
        done = 0
        for attempt in range(40):
            job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                # At some moment after the first chunk that it finishes, or before.
                out, err = job.communicate(timeout=took * moments.uniform(0.3, 1.1) if attempt < 8 else None)
            except subprocess.TimeoutExpired:
                job.send_signal(signal.SIGKILL)
                out, err = job.communicate()
                kills += 1
                if (tmp_path / "out.npy").exists():
                    held = hashlib.sha256((tmp_path / "out.npy").read_bytes()).hexdigest()
                    assert f"file {held}" in expected, "what has the name of the output is whole"
            else:
                assert job.returncode == 0, err
            counts = [int(line) for line in out.splitlines() if line.isdigit()]
            goes_on += bool(counts and done and counts[0] > 50)
            done = counts[-1] if counts else done
            if job.returncode == 0:
                break
        assert [line for line in out.splitlines() if not line.isdigit()] == expected
        assert not list(tmp_path.glob("*.resume")) + list(tmp_path.glob("*.partial"))
    assert goes_on > 0
    remark(f"killed at random, {kind}", f"{kills} times, {goes_on} times gone on with, same output")
