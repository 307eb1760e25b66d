"""The plugin where nobody asked for it: nothing is loaded, nothing is hooked."""

import subprocess
import sys

LISTS_MODULES = """
import sys

def test_it():
    ours = [name for name in sys.modules if name.partition(".")[0] == "dpmem"]
    print("ours:", *sorted(ours))
    print("all:", *sorted(name for name in sys.modules if not name.startswith(("test_", "conftest"))))
"""
MARKED = """
import pytest

@pytest.mark.limit_device_memory("1MB")
def test_it():
    pass
"""


def listed(done, what):
    return set(next(line for line in done.text.splitlines() if line.startswith(f"{what}:")).split()[1:])


def test_nothing_is_loaded_unless_asked(suite):
    done = suite(LISTS_MODULES)
    assert listed(done, "ours") == {"dpmem", "dpmem.pytest_plugin"}
    without = suite(LISTS_MODULES, "-p", "no:dpmem")
    assert listed(without, "ours") == set()
    assert listed(done, "all") - listed(without, "all") == listed(done, "ours")
    assert (done.exit_code, without.exit_code) == (0, 0)


def test_listing_tests_loads_nothing(suite):
    conftest = """
import sys
def pytest_unconfigure():
    print("native:", "dpmem._native" in sys.modules)
"""
    for options in (["--dpmem"], []):
        done = suite(MARKED, "--collect-only", *options, conftest=conftest)
        assert "native: False" in done.text, done.text
        assert "device memory (dpmem)" not in done.text


def test_without_the_plugin_the_marks_are_unknown(suite):
    done = suite(MARKED, "-p", "no:dpmem")
    assert done.exit_code == 2
    assert "'limit_device_memory' not found in `markers` configuration option" in done.text


def test_marks_and_options_are_documented():
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null"]
    done = subprocess.run([*command, "--markers"], capture_output=True, text=True, timeout=60)
    assert "@pytest.mark.limit_device_memory(size): fail the test" in done.stdout
    assert "@pytest.mark.limit_device_leaks(size): fail the test" in done.stdout
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60)
    assert "--dpmem-most=N" in done.stdout


def test_a_number_of_tests_is_expected(suite):
    done = suite(MARKED, "--dpmem", "--dpmem-most=some")
    assert done.exit_code == 4
    assert "expected a number of tests, got 'some'" in done.text
