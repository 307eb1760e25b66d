"""Both ways of filling buffers, on the one device that is always there."""

import dpnp
import pytest

from dpmem import _buffers


@pytest.fixture(scope="session", autouse=True)
def warm():
    # dpnp can deadlock if two threads are the first to use a function.
    dpnp.asnumpy(dpnp.sum(dpnp.ones(3) * 2))


@pytest.fixture(params=["direct", "staged"])
def way(request, monkeypatch):
    """Read into device memory, or into host memory that is copied from, as on devices with memory of their own."""
    if request.param == "staged":
        monkeypatch.setattr(_buffers, "host_reaches_memory_of", lambda queue: False)
    return request.param
