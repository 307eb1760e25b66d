"""Without a device, what goes in chunks says where the remedy is."""

import pytest

PROGRAM = """
import dpmem, numpy as np
np.save("data.npy", np.ones(100))
{}
"""
CALLS = (
    "dpmem.chunks('data.npy')",
    "dpmem.plan_chunks(lambda x: x, 'data.npy')",
    "dpmem.map_chunks(lambda x: x, 'data.npy', reduce='sum')",
)


@pytest.mark.parametrize("call", CALLS)
def test_no_device_is_said_with_the_remedy(call, no_device):
    ended = no_device.run(PROGRAM.format(call))
    assert ended.exit_code == 1
    last = ended.stderr.splitlines()[-1]
    assert last == "RuntimeError: there is no SYCL device; `dpmem doctor` says why, and what to type"
