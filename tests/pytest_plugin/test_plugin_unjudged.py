"""Where nothing can be said about a marked test: it runs on, and a warning says why."""

import pytest
from suite_sessions import run_suite

from dpmem import _suite_usage

PASSES = """
import pytest

@pytest.mark.limit_device_memory("1MB")
@pytest.mark.limit_device_leaks("1MB")
def test_it():
    pass

def test_other():
    pass
"""
ALLOCATES = """
import dpnp, pytest

@pytest.mark.limit_device_leaks("1MB")
def test_it():
    dpnp.ones(1 << 20)
"""
STOPS = """
import dpnp, pytest, dpmem

@pytest.mark.limit_device_leaks("1MB")
def test_stops():
    dpmem.stop()

@pytest.mark.limit_device_leaks("1MB")
def test_starts_anew():
    dpmem.stop()
    dpmem.start()

KEPT = []

@pytest.mark.limit_device_leaks("1MB")
def test_is_judged_again():
    KEPT.append(dpnp.ones(1 << 20))
"""
NO_WAY_IN = "import dpnp, dpmem\ndpnp.ones(3)\ndpmem._native.hook_inject('no-way-in')\n"
FORKED = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    item.config.pluginmanager.get_plugin("dpmem-suite")._pid -= 1
"""
SHARES = """
import dpnp, pytest
KEPT = []
pytestmark = [pytest.mark.limit_device_memory("50%"), pytest.mark.limit_device_leaks("1MB")]

def test_clean():
    dpnp.ones(1 << 20)

def test_leak():
    KEPT.append(dpnp.ones(1 << 20, dtype="f4"))
"""
OWN_RUNTEST = """
calls = []

def pytest_runtest_setup(item):
    plain = item.runtest
    item.runtest = lambda: (calls.append(1), plain())

def pytest_runtest_teardown(item):
    item.runtest()
    print("called by somebody else:", len(calls) - 1)
"""
NOT_JUDGED = "limit_device_leaks not judged: "


def test_without_dpctl_there_is_nothing_to_observe(suite):
    done = suite(PASSES)
    assert done.outcomes == {"test_it": "PASSED", "test_other": "PASSED"}
    reason = "test_it: limit_device_memory and limit_device_leaks not judged: dpctl is not loaded in this process"
    assert f"NotJudged: {reason}" in done.text
    assert "1 warning" in done.text


def test_such_a_test_can_be_made_to_fail(suite):
    done = suite(PASSES, "-W", "error::dpmem.pytest_plugin.NotJudged")
    assert done.outcomes == {"test_it": "FAILED", "test_other": "PASSED"}


@pytest.mark.parametrize(
    ("conftest", "reason"),
    [(NO_WAY_IN, "but not the slot of"), (FORKED, "this is a forked child, which records nothing")],
    ids=["no way in", "forked"],
)
def test_where_recording_is_impossible_tests_run_on(suite, conftest, reason):
    done = suite(ALLOCATES, "--dpmem", conftest=conftest)
    assert done.outcomes == {"test_it": "PASSED"}, done.text
    (warning,) = (line for line in done.text.splitlines() if "NotJudged: " in line)
    assert NOT_JUDGED in warning
    assert reason in warning
    assert f"1 test not measured: {warning.split(NOT_JUDGED)[1]}" in done.text


def test_tests_that_stop_the_recording_are_not_judged_and_the_next_is(suite):
    done = suite(STOPS)
    assert done.outcomes == {"test_stops": "PASSED", "test_starts_anew": "PASSED", "test_is_judged_again": "FAILED"}
    assert f"test_stops: {NOT_JUDGED}recording was stopped during the test" in done.text
    assert f"test_starts_anew: {NOT_JUDGED}recording was stopped and started anew during the test" in done.text
    assert "left 4 MiB in use" in done.text or "left 8 MiB in use" in done.text


def test_one_limit_that_means_nothing_here_does_not_hide_the_other(suite):
    conftest = "import dpmem._native as native\nnative.device_room = lambda device: (None, None)\n"
    done = suite(SHARES, conftest=conftest)
    assert done.outcomes == {"test_clean": "PASSED", "test_leak": "FAILED"}, done.text
    reason = "the capacity of opencl:cpu:0 is not known: give the limit in bytes"
    assert f"NotJudged: test_clean: limit_device_memory not judged: {reason}" in done.text
    assert "left 4 MiB in use" in done.failures["test_leak"]
    assert f"limit_device_memory not judged: {reason}" in done.failures["test_leak"]


def test_a_runtest_of_somebody_else_is_called_and_put_back(suite):
    done = suite(ALLOCATES, conftest=OWN_RUNTEST)
    assert done.outcomes == {"test_it": "PASSED"}, done.text
    assert "called by somebody else: 1" in done.text


def test_a_fault_of_dpmem_is_no_failure_of_the_test(tmp_path):
    conftest = "import dpmem._suite_usage as usage\nusage._counts = lambda device: 1 / 0\n"
    done = run_suite(tmp_path, ALLOCATES + "\ndef test_unmarked(): pass\n", "--dpmem", conftest=conftest)
    assert done.outcomes == {"test_it": "PASSED", "test_unmarked": "PASSED"}
    assert f"{NOT_JUDGED}dpmem failed: ZeroDivisionError" in done.text
    assert "2 tests not measured: dpmem failed" in done.text


def test_work_that_never_ends_is_waited_for_once(monkeypatch):
    asked, answers = [], [False, False, True, True]
    monkeypatch.setattr(_suite_usage._runtime, "drain", lambda seconds: asked.append(seconds) or answers.pop(0))
    monkeypatch.setattr(_suite_usage.gc, "collect", lambda: 0)
    for reason in ("within 1 min 0 s", "within 1 s"):
        with pytest.raises(_suite_usage.Unknown, match=reason):
            _suite_usage.settle()
    _suite_usage.settle()
    _suite_usage.settle()
    assert asked == [60.0, 1.0, 1.0, 60.0]
