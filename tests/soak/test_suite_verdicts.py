"""Verdicts of the pytest plugin, over and over: a test that is clean, leaks, has work in flight, or fills a cache."""

import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest

from .environments import PROGRAMS

REPEATS = 200
TIMEOUT_S = 3600
EXPECTED = {"test_clean": "passed", "test_leaking": "failed", "test_in_flight": "passed", "test_lazy_cache": "passed"}
SPIN = "while True: pass"
pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


@pytest.fixture(params=["idle", "busy"])
def other_core(request):
    """Whether another process takes a core."""
    if request.param == "idle":
        yield request.param
        return
    spinning = subprocess.Popen([sys.executable, "-c", SPIN])
    yield request.param
    spinning.kill()
    spinning.wait()


def test_no_verdict_is_wrong(environment, tmp_path, figure, other_core):
    shutil.copyfile(PROGRAMS / "suite_repeats.py", tmp_path / "test_repeats.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider -p no:xdist\n")
    results = tmp_path / "results.xml"
    command = [*environment.python, "-m", "pytest", "-q", "--junitxml", str(results), "test_repeats.py"]
    ended = environment.run(command, tmp_path, TIMEOUT_S, SUITE_REPEATS=str(REPEATS))
    assert ended.exit_code == 1, ended.stdout[-2000:]
    found = Counter()
    for case in ElementTree.parse(results).iter("testcase"):
        failure = case.find("failure")
        outcome = "passed" if len(case.findall("*")) == 0 else "other"
        if failure is not None and failure.get("message", "").startswith("Failed: left 2 MiB in use on "):
            outcome = "failed"
        found[case.get("name").partition("[")[0], outcome] += 1
    assert found == {item: REPEATS for item in EXPECTED.items()}
    assert "warning" not in ended.stdout, "each test has been judged"
    figure(f"{REPEATS} × 4 marked tests, the other core {other_core}", f"{4 * REPEATS} verdicts, none wrong")
