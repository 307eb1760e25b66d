import asyncio
import collections
import functools
import gc
import logging
import unittest

import dpnp
import pytest

MIB = 1 << 20
KEPT = []


def mib(count):
    return dpnp.ones(count * MIB // 4, dtype="f4")


leaks = pytest.mark.limit_device_leaks("1MB")


@leaks
def test_clean():
    x = mib(4)
    assert float((x * x + x).sum()) > 0


@leaks
def test_leak():
    KEPT.append(mib(4))


@leaks
def test_leak_in_flight():
    x = dpnp.ones((1024, 1024), dtype="f4")
    for _ in range(4):
        x @ x


@leaks
def test_leak_of_a_cycle():
    class Node:
        def __init__(self):
            self.itself, self.array = self, mib(4)

    gc.disable()
    Node()
    gc.enable()


@functools.lru_cache(maxsize=4)
def table(number):
    return mib(number + 1)


@leaks
def test_cache():
    for number in range(3):
        table(number)


@leaks
def test_cache_that_overflows():
    for number in range(6):
        table(number)


RING = collections.deque((mib(2) for _ in range(3)), maxlen=3)


@leaks
def test_full_ring_that_others_filled():
    RING.append(mib(2))


@leaks
@pytest.mark.parametrize("count", [0, 4])
def test_parametrized(count):
    if count:
        KEPT.append(mib(count))


@leaks
def test_global_that_is_replaced():
    global LAST
    LAST = mib(4)


@pytest.mark.limit_device_memory("16 MiB")
def test_memory():
    x = mib(8)
    y = x * 2
    KEPT.append(y + x)


@pytest.mark.limit_device_memory("16MiB")
def test_memory_of_others_does_not_count(big):
    mib(12)


@pytest.mark.limit_device_memory("8MiB")
def test_host_memory_is_no_device_memory():
    dpnp.asnumpy(mib(6))


@pytest.mark.limit_device_memory(20 * MIB)
def test_memory_in_bytes():
    mib(16)


@pytest.mark.limit_device_memory("0.000001%")
def test_memory_as_a_share():
    mib(1)


@pytest.mark.limit_device_leaks(0)
def test_nothing_may_leak_but_this_does():
    KEPT.append(dpnp.ones(4))


@pytest.mark.limit_device_leaks(0)
def test_nothing_leaks():
    mib(1)


@pytest.mark.limit_device_memory("1GB")
@pytest.mark.limit_device_leaks("1MB")
def test_both_marks():
    KEPT.append(mib(2))


@pytest.mark.limit_device_memory("1MiB")
@leaks
def test_over_both():
    KEPT.append(mib(2))


@pytest.fixture(scope="session")
def big():
    return mib(24)


@pytest.fixture
def factory():
    made = []

    def make(count):
        made.append(mib(count))
        return made[-1]

    yield make
    made.clear()


@pytest.fixture
def holder():
    return {"arrays": []}


@pytest.fixture
def lasting():
    return KEPT


@pytest.fixture(scope="module")
def wide():
    return []


def lent(scope):
    @pytest.fixture(scope=scope, name=f"of_{scope}")
    def fixture():
        return mib(2)

    return fixture


of_function, of_class, of_module, of_package, of_session = map(
    lent, ("function", "class", "module", "package", "session")
)


@leaks
@pytest.mark.parametrize("scope", ["function", "class", "module", "package", "session"])
def test_first_use_in_the_body(request, scope):
    assert request.getfixturevalue(f"of_{scope}").nbytes == 2 * MIB


@pytest.mark.limit_device_memory("1MiB")
class TestScopes:
    @leaks
    def test_use_before_the_body(self, of_function, of_class, of_module, of_package, of_session):
        mib(1)


@leaks
def test_factory(factory):
    factory(4)


@leaks
def test_factory_and_a_leak(factory):
    factory(4)
    KEPT.append(mib(2))


@leaks
def test_value_of_a_fixture(holder):
    holder["arrays"].append(mib(4))


@leaks
def test_fixture_that_lends_what_lasts(lasting):
    lasting.append(mib(4))


@leaks
def test_wide_fixture_that_grows(wide):
    wide.append(mib(4))


@leaks
def test_monkeypatch(monkeypatch):
    monkeypatch.setattr(f"{__name__}.LAST", mib(4), raising=False)


@leaks
def test_logged(caplog):
    logging.getLogger("suite").warning("made %d", 1, extra={"array": mib(4)})


@leaks
def test_coroutine():
    async def work():
        return float(mib(4).sum())

    asyncio.run(work())


class TestClass:
    def setup_method(self):
        self.prepared = mib(4)

    @leaks
    def test_instance(self):
        self.result = mib(4)
        vars(self).setdefault("all", []).append(self.result)

    @leaks
    def test_class_attribute(self):
        type(self).kept = (*getattr(type(self), "kept", ()), mib(4))


class TestOfUnittest(unittest.TestCase):
    def setUp(self):
        self.prepared = mib(4)
        self.addCleanup(setattr, self, "prepared", None)

    @leaks
    def test_unit_clean(self):
        self.result = mib(4)

    @leaks
    def test_unit_leak(self):
        with self.subTest("part"):
            KEPT.append(mib(4))

    @pytest.mark.limit_device_memory("1MiB")
    def test_unit_memory(self):
        mib(4)
