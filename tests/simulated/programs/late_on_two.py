"""Recording starts when there are blocks on both cards, some of which arrays with a queue of the other card show."""

import sys

import dpctl
import dpctl.memory
import dpnp
from known_truth import expect, settle

first, second = (dpctl.SyclDevice(name) for name in sys.argv[1:3])
queue = dpctl.SyclQueue(second)
x, y = dpnp.ones(100_000, dtype="f8", device=first), dpnp.ones(200_000, dtype="f8", device=second)
seen = x.to_device(second)  # the same block
alone = dpnp.ones(50_000, dtype="f8", device=second).to_device(first)  # nothing else shows that block
shared = dpctl.memory.MemoryUSMShared(5000, queue=queue)
host = dpctl.memory.MemoryUSMHost(3000, queue=queue)
settle()

import dpmem

dpmem.start()


def in_use(device, kind):
    return dpmem.memory_stats(device)[f"allocated_bytes.{kind}.current"]


expect("device memory", [in_use(first, "device"), in_use(second, "device")], [800_000, 2_000_000])
expect("shared memory", [in_use(first, "shared"), in_use(second, "shared")], [0, 5000])
later = dpctl.memory.MemoryUSMHost(3001, queue=queue)
hosts = {row["device"] for row in dpmem.memory_snapshot() if row["kind"] == "host"}
expect("host memory is of neither, as that made later", hosts, {None})
del x, seen, y, alone, shared
settle()
expect("all gone", [dpmem.memory_allocated(first), dpmem.memory_allocated(second)], [0, 0])
