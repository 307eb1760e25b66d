"""Figures of the soak: tests note them, and they are printed at the end as a Markdown table."""

import pytest

from .environments import find_environments

_figures: list[tuple[str, str]] = []


def pytest_generate_tests(metafunc):
    if "environment" in metafunc.fixturenames:
        metafunc.parametrize("environment", find_environments(), ids=lambda each: each.name)


@pytest.fixture
def figure(environment):
    """Call it with what was counted and how it came out."""

    def note(what: str, outcome: str) -> None:
        _figures.append((f"{environment.name}: {what}", outcome))

    return note


def pytest_terminal_summary(terminalreporter):
    if _figures:
        terminalreporter.section("figures")
        terminalreporter.line("| what | outcome |")
        terminalreporter.line("|---|---|")
        for what, outcome in _figures:
            terminalreporter.line(f"| {what} | {outcome} |")
