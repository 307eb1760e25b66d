"""Devices with memory of their own: through host memory, by copies that overlap with computing."""

import json

VALUES = """
import sys, warnings
import numpy as np, dpctl, dpnp, dpmem, json
from dpmem import _buffers, _feed
rng = np.random.default_rng(0)
found = {}
for name in sys.argv[1:]:
    queue = dpctl.SyclQueue(name)
    a, b = rng.random((50, 7)), rng.integers(0, 99, 50).astype(">i4")
    it = dpmem.chunks((a.T.copy().T, b), 8, queue=queue, in_flight=2)
    right = all(
        (dpnp.asnumpy(x * 2) == a[i] * 2).all() and (dpnp.asnumpy(y) == b[i]).all() for i, (x, y) in it
    )
    found[name] = [right, type(it._feed).__name__, dpmem.chunks(np.broadcast_to(1.0, 10**10), queue=queue).rows]
print(json.dumps(found))
"""


def test_values_on_each_device(workstation):
    names = ["level_zero:gpu:0", "opencl:gpu:0", "opencl:cpu:0"]
    found = workstation.run(VALUES, *names).json()
    near, far = (8 << 20) // 8, (64 << 20) // 8
    assert found == dict(zip(names, [[True, "StagedFeed", far]] * 2 + [[True, "DirectFeed", near]], strict=True))


TRACE = """
import json
import numpy as np, dpctl, dpnp, dpmem
from dpctl.utils import SequentialOrderManager
queue = dpctl.SyclQueue("opencl:gpu:0", property="enable_profiling")
array = np.random.default_rng(0).random((12, 250_000))
dpnp.sin(dpnp.ones(3, sycl_queue=queue))
copies, kernels, enqueued = {}, {}, []
with dpmem.chunks(array, 1, queue=queue) as it:
    enqueue = it._feed._copy
    def traced(**how):
        done = enqueue(**how)
        if done:
            (start, _), _, (event,) = it._feed.copying[-1]
            copies[start] = event
        return done
    it._feed._copy = traced
    for index, x in it:
        # Before any work on this chunk: which copy was ordered last?
        enqueued.append(max(copies) - index.start)
        y = x
        for _ in range(20):
            y = dpnp.sin(y)
        kernels[index.start] = SequentialOrderManager[queue].submitted_events[-1]
    SequentialOrderManager[queue].wait()
    def times(events):
        return [(events[k].profiling_info_submit, events[k].profiling_info_start, events[k].profiling_info_end)
            for k in range(12)]
    print(json.dumps({"copies": times(copies), "kernels": times(kernels), "ahead": enqueued}))
"""


def test_the_next_chunk_is_copied_while_this_one_is_computed_on(workstation):
    # OpenCL, since the other driver of simulated devices does everything before it returns.
    trace = workstation.run(TRACE).json()
    copies, kernels = trace["copies"], trace["kernels"]
    # The copy of chunk k + 1 was ordered before work on chunk k had ended, and most times before it had begun.
    ahead = [copies[k + 1][0] < kernels[k][2] for k in range(11)]
    assert sum(ahead) >= 6, json.dumps(trace)
    assert max(trace["ahead"]) == 1
    # And it did run beside that work: it was over before the last kernel of chunk k was.
    beside = [copies[k + 1][2] < kernels[k][2] for k in range(11)]
    assert sum(beside) >= 4, json.dumps(trace)
    # A buffer is not copied into before the work on the chunk that it held is over.
    assert all(copies[k + 2][1] >= kernels[k][2] for k in range(10)), json.dumps(trace)


BUDGET = """
import numpy as np, dpctl, dpnp, dpmem, json
import simulated_controls as controls
queue = dpctl.SyclQueue("level_zero:gpu:0")
dpmem.start()
peak, used = dpmem.max_memory_allocated("level_zero:gpu:0"), [controls.used()]
for _, x in dpmem.chunks(np.zeros((40, 1 << 17)), 4, queue=queue, in_flight=3):
    used.append(controls.used())
print(json.dumps([dpmem.max_memory_allocated("level_zero:gpu:0") - peak, max(used) - used[0]]))
"""


def test_device_memory_is_what_is_in_flight(workstation):
    # Three chunks of 4 MiB; host memory takes no room on a device.
    machine = workstation.setting(UR_L0_DISABLE_USM_ALLOCATOR="1")
    assert machine.run(BUDGET).json() == [3 * (4 << 20)] * 2, "as dpmem counts and as the device does"


def test_a_chunk_that_does_not_fit_is_an_error_and_leaves_nothing(workstation):
    program = """
import numpy as np, dpctl, dpmem, dpctl.memory as usm
queue = dpctl.SyclQueue("level_zero:gpu:0")
dpmem.start()
try:
    next(dpmem.chunks(np.broadcast_to(np.float32(1), (1 << 26,)), 1 << 25, queue=queue))
except usm.USMAllocationError as error:
    print("refused", dpmem.memory_allocated("level_zero:gpu:0"))
"""
    ended = workstation.having("mem=64MiB").run(program)
    assert (ended.exit_code, ended.stdout) == (0, "refused 0\n"), ended.stderr
