import dpnp
import pytest

MIB = 1 << 20
KEPT = []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_keeps(count):
    KEPT.append(dpnp.ones(count * MIB // 4, dtype="f4"))


def test_hungriest():
    x = dpnp.ones(16 * MIB // 4, dtype="f4")
    assert float(x.sum()) > 0


@pytest.fixture
def prepared():
    return [dpnp.ones(32 * MIB // 4, dtype="f4")]


def test_little(prepared):
    prepared.append(dpnp.ones(5 * MIB // 4, dtype="f4"))


def test_uses_none():
    pass


@pytest.mark.limit_device_leaks("1MB")
def test_leak():
    KEPT.append(dpnp.ones(4 * MIB // 4, dtype="f4"))


def test_fails():
    x = dpnp.ones(7 * MIB // 4, dtype="f4")
    assert x is None


def test_resets_peaks():
    import dpmem

    x = dpnp.ones(12 * MIB // 4, dtype="f4")
    del x
    dpmem.synchronize()
    dpmem.reset_peak_memory_stats()


@pytest.mark.skip(reason="not here")
def test_skipped():
    pass
