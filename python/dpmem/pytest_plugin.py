"""The pytest plugin: `--dpmem`, `limit_device_memory` and `limit_device_leaks`.

pytest loads this module wherever dpmem is installed. So it is inert unless asked: what measures is loaded only for
`--dpmem`, or once a test that will run has one of the two marks.

PYTEST_DONT_REWRITE: there are no asserts in here.
"""

from __future__ import annotations

import argparse

import pytest

#: Marks, as pytest lists them with `--markers`.
MARKS = {
    "limit_device_memory": (
        "limit_device_memory(size): fail the test if its body uses more device and shared memory on one device than "
        "`size`, what was in use when it began not counted. A number of bytes, or a text such as '64MB', '4GiB', '50%'."
    ),
    "limit_device_leaks": (
        "limit_device_leaks(size): fail the test if it leaves more USM of one device in use than `size` each time that "
        "it runs. A test that leaves more is run again; what that doesn't make grow, as a cache, is no leak."
    ),
}


class NotJudged(pytest.PytestWarning):
    """A marked test passed or failed by itself, and nothing can be said about its limit.

    `-W error::dpmem.pytest_plugin.NotJudged` makes such a test fail.
    """


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("dpmem", "device memory")
    group.addoption(
        "--dpmem",
        action="store_true",
        help="measure the device memory (SYCL USM) of each test and print the hungriest",
    )
    group.addoption(
        "--dpmem-most",
        type=_count,
        default=10,
        metavar="N",
        help="print N tests, 0 for all (default: 10)",
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of tests, got {text!r}")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and begin where the whole suite is to be measured."""
    for line in MARKS.values():
        config.addinivalue_line("markers", line)
    if config.getoption("dpmem"):
        _begin(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin where a test that will run is marked."""
    if any(item.get_closest_marker(name) for item in items for name in MARKS):
        _begin(config)


def _begin(config: pytest.Config) -> None:
    if config.getoption("collectonly") or config.pluginmanager.has_plugin("dpmem-suite"):
        return
    from dpmem._suite import Suite

    config.pluginmanager.register(Suite(config), "dpmem-suite")
