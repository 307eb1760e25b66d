"""A pytest plugin: writes the outcome of each test, and what its failure said, to the file named in SOAK_OUTCOMES, and
makes tests repeatable.

dpnp's tests draw random numbers without a seed; seeded by the test's name they draw the same in each run.
"""

import json
import os
import random
import re
import zlib

import numpy
import pytest

_outcomes: dict[str, list[str]] = {}
_said: dict[str, list[str]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    seed = zlib.crc32(_name(item.nodeid).encode())
    random.seed(seed)
    numpy.random.seed(seed)


def pytest_collection_modifyitems(config, items):
    """With SOAK_SHARE=N, each N-th test is run, drawn by its name."""
    share = int(os.environ.get("SOAK_SHARE", "1"))
    drawn = {item: zlib.crc32(_name(item.nodeid).encode()) % share == 0 for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not drawn[item]])
    items[:] = [item for item in items if drawn[item]]


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        expected = "x" if hasattr(report, "wasxfail") else ""
        _outcomes.setdefault(_name(report.nodeid), []).append(f"{report.when} {expected}{report.outcome}")
    crash = getattr(report.longrepr, "reprcrash", None) if report.failed else None
    if crash is not None:
        _said.setdefault(_name(report.nodeid), []).append(crash.message)


def pytest_sessionfinish(session, exitstatus):
    with open(os.environ["SOAK_OUTCOMES"], "w") as file:
        json.dump({"exit": int(exitstatus), "outcomes": _outcomes, "said": _said}, file)


def _name(nodeid):
    return re.sub("0x[0-9a-f]{6,}", "0x…", nodeid)
