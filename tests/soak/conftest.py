"""Figures of the soak: tests note them, and they are printed at the end as a Markdown table."""

import os

import pytest

from .environments import find_environments

# A process that crashes says where its threads were in Python.
os.environ["PYTHONFAULTHANDLER"] = "1"

_FIGURE = "figure"


def pytest_generate_tests(metafunc):
    if "environment" in metafunc.fixturenames:
        metafunc.parametrize("environment", find_environments(), ids=lambda each: each.name)


@pytest.fixture
def figure(environment, record_property):
    """Call it with what was counted and how it came out."""

    def note(what: str, outcome: str) -> None:
        record_property(_FIGURE, (f"{environment.name}: {what}", outcome))

    return note


@pytest.fixture
def remark(record_property):
    """As `figure`, for what runs in this very environment."""
    return lambda what, outcome: record_property(_FIGURE, (what, outcome))


def pytest_terminal_summary(terminalreporter):
    # Properties come back from the processes of xdist, too.
    # Among what is counted are tests that were left out, which are no reports.
    counted = [each for all_of in terminalreporter.stats.values() for each in all_of]
    reports = [each for each in counted if isinstance(each, pytest.TestReport) and each.when == "call"]
    figures = [value for each in reports for name, value in each.user_properties if name == _FIGURE]
    if figures:
        terminalreporter.section("figures")
        terminalreporter.line("| what | outcome |")
        terminalreporter.line("|---|---|")
        for what, outcome in figures:
            terminalreporter.line(f"| {what} | {outcome} |")
