"""Verdicts on real programs: what is a leak and what isn't, what is used, and what a failure says."""

import re

LEAKING = {
    "test_leak",
    "test_parametrized[4]",
    "test_nothing_may_leak_but_this_does",
    "test_both_marks",
    "test_over_both",
    "test_factory_and_a_leak",
    "test_fixture_that_lends_what_lasts",
    "test_wide_fixture_that_grows",
    "test_class_attribute",
    "test_unit_leak",
}
HUNGRY = {"test_memory", "test_memory_as_a_share", "test_unit_memory"}


def test_each_test_has_its_verdict_and_failures_say_why(suite):
    done = suite("verdicts.py")
    failed = {name for name, outcome in done.outcomes.items() if outcome != "PASSED"}
    assert failed == LEAKING | HUNGRY, done.text
    assert all(done.outcomes[name] == "FAILED" for name in failed)
    assert len(done.outcomes) == 38
    assert "warning" not in done.text
    assert "Traceback" not in done.text
    assert done.text.count("FAILED test_suite.py::TestOfUnittest::test_unit_leak") == 1, "its further runs are not told"
    check_leak(done.failures["test_leak"])
    check_memory(done.failures["test_memory"])
    assert "more than its limit of 0.000001% (" in done.failures["test_memory_as_a_share"]
    text = done.failures["test_over_both"]
    assert text.index("used 2 MiB on") < text.index("in use at the peak:\n") < text.index("left 2 MiB in use")
    assert text.count("in use at the peak:\n") == 1
    text = done.failures["test_factory_and_a_leak"]
    assert "left 2 MiB in use" in text, "what the fixture keeps is none"


def check_leak(text):
    assert "left 4 MiB in use on opencl:cpu:0 each of 3 times that it ran, more than its limit of 1MB" in text
    assert "still in use from its last run:\n       4 MiB in 1 block  test_suite.py:16 in mib" in text
    assert "held by test_suite.KEPT[2] (container)" in text
    assert "in use at the peak:\n" in text


def check_memory(text):
    assert "used 24 MiB on opencl:cpu:0, more than its limit of 16 MiB" in text
    peak, begun = re.search(r"(\d+) MiB in use at the peak, (\d+) MiB when it began", text).groups()
    assert int(peak) - int(begun) == 24
    at_peak = text.split("in use at the peak:")[1]
    assert re.search(r"8 MiB in 1 block  test_suite.py:\d+ in test_memory   KEPT.append\(y \+ x\)", at_peak)
    assert "still in use at its end:\n       8 MiB in 1 block" in at_peak


OWN_FAILURES = """
import pytest, dpnp, unittest
MIB = 1 << 20
KEPT = []
runs = {}
both = [pytest.mark.limit_device_memory("1MiB"), pytest.mark.limit_device_leaks("1MB")]

def mib(count):
    return dpnp.ones(count * MIB // 4, dtype="f4")

def marked(test):
    for mark in both:
        test = mark(test)
    return test

@marked
def test_fails():
    KEPT.append(mib(4))
    assert len(KEPT) == 7, "my own words"

@marked
def test_fails_without_memory():
    assert not both, "my own words"

@marked
def test_skips():
    KEPT.append(mib(4))
    pytest.skip("not here")

@marked
@pytest.mark.xfail(reason="known", strict=True)
def test_expected_to_leak():
    KEPT.append(mib(4))

@marked
@pytest.mark.xfail(reason="wrongly suspected", strict=True)
def test_expected_to_leak_and_does_not():
    pass

@pytest.fixture
def broken():
    raise RuntimeError("broken fixture")

@marked
def test_never_begins(broken):
    pass

@pytest.mark.limit_device_leaks("1MB")
def test_only_once():
    KEPT.append(mib(4))
    runs["once"] = runs.get("once", 0) + 1
    assert runs["once"] == 1, "it has run before"

class TestOfUnittest(unittest.TestCase):
    @marked
    def test_unit_fails(self):
        KEPT.append(mib(4))
        self.fail("my own words")

    @pytest.mark.limit_device_leaks("1MB")
    def test_unit_only_once(self):
        KEPT.append(mib(4))
        runs["unit"] = runs.get("unit", 0) + 1
        self.assertEqual(runs["unit"], 1)

    @marked
    def test_unit_skips(self):
        self.skipTest("not here")

@pytest.mark.limit_device_memory("4 apples")
def test_no_size(): runs["bad"] = 1

@pytest.mark.limit_device_leaks
def test_no_argument(): runs["bad"] = 1

@pytest.mark.limit_device_leaks("1MB", "2MB", keyword=3)
def test_too_many(): runs["bad"] = 1

@pytest.mark.limit_device_leaks(True)
def test_no_number(): runs["bad"] = 1

@pytest.mark.limit_device_memory(-1)
def test_negative(): runs["bad"] = 1

def test_bad_marks_run_nothing(): assert "bad" not in runs
"""


def test_failures_of_their_own_stand_and_bad_marks_are_told(suite):
    done = suite(OWN_FAILURES)
    expected = dict.fromkeys(
        (
            *("test_fails", "test_fails_without_memory", "test_expected_to_leak_and_does_not", "test_only_once"),
            *("test_unit_fails", "test_unit_only_once"),
            *("test_no_size", "test_no_argument", "test_too_many", "test_no_number", "test_negative"),
        ),
        "FAILED",
    )
    expected |= {"test_expected_to_leak": "XFAIL", "test_never_begins": "ERROR", "test_bad_marks_run_nothing": "PASSED"}
    assert {name: outcome for name, outcome in done.outcomes.items() if outcome != "SKIPPED"} == expected, done.text
    assert "2 skipped" in done.text
    for name in ("test_fails", "test_unit_fails"):
        text = done.failures[name]
        assert "AssertionError: my own words" in text
        assert "Captured device memory call" in text
        assert "used 4 MiB on opencl:cpu:0, more than its limit of 1 MiB" in text
        assert "leaks not judged: the failure keeps what the test's frames held" in text
    assert "used " not in done.failures["test_fails_without_memory"]
    assert "when it was run again, it raised AssertionError: it has run before" in done.failures["test_only_once"]
    assert "when it was run again, it had another outcome" in done.failures["test_unit_only_once"]
    assert "expected a size such as `4GB`, `4GiB`, `500_000` or `50%`" in done.failures["test_no_size"]
    assert "expected one size, as in limit_device_leaks('64MB'), got ()" in done.failures["test_no_argument"]
    assert "got ('1MB', '2MB', keyword=3)" in done.failures["test_too_many"]
    assert "expected a size as a number of bytes or a text such as '64MB', got True" in done.failures["test_no_number"]
    assert "got -1" in done.failures["test_negative"]


def test_the_debugger_keeps_an_instance_and_dpmem_says_so(suite):
    source = """
import unittest, dpnp, pytest
KEPT = []
class TestOfUnittest(unittest.TestCase):
    @pytest.mark.limit_device_leaks("1MB")
    def test_unit(self):
        KEPT.append(dpnp.ones(1 << 20))
"""
    done = suite(source, "--pdb")
    assert "when it was run again, with --pdb its tearDown has not run yet" in done.text
    assert done.outcomes == {"test_unit": "FAILED"} or "1 failed" in done.text
