"""Marked tests whose verdict is known, each under many names. Copied and run by pytest with the plugin."""

import collections
import functools
import os

import dpnp
import pytest

MIB = 1 << 20
REPEATS = int(os.environ["SUITE_REPEATS"])
# Each repeat has a cache of its own, which its first run fills.
caches = {}

pytestmark = pytest.mark.limit_device_leaks("1MB")
repeated = pytest.mark.parametrize("number", range(REPEATS))


def mib(count):
    return dpnp.ones(count * MIB // 4, dtype="f4")


@repeated
def test_clean(number):
    x = mib(2)
    y = x * x + x
    assert float(y.sum()) > 0


@repeated
def test_leaking(number):
    x = mib(2)
    held[number].append(x * 2)


held = collections.defaultdict(list)


@pytest.fixture(autouse=True)
def no_more_than_a_test_leaks():
    yield
    held.clear()
    caches.clear()


@repeated
def test_in_flight(number):
    x = dpnp.ones((768, 768), dtype="f4")
    for _ in range(6):
        x = x @ x * 1e-3


@repeated
def test_lazy_cache(number):
    table = caches.setdefault(number, functools.lru_cache(maxsize=3)(mib))
    for size in (2, 3, 4, 5):
        table(size)
