"""Runs out of memory, catches it, drops its arrays and goes on, N times. Prints what is reserved in the end.

survives.py N
"""

import sys

import dpnp

import dpmem

MIB = 1 << 20
limit = 64 * MIB
dpnp.zeros(10)
dpmem.set_memory_limit(limit)
caught = {"OutOfDeviceMemory": 0, "RuntimeError": 0}
for turn in range(int(sys.argv[1])):
    kept = []
    try:
        while True:
            kept.append(dpnp.ones(2 * MIB, dtype="f4"))
            if turn % 2:
                # A temporary of dpnp's C++ is what does not fit here.
                kept.append(dpnp.cumsum(kept[-1]))
    except dpmem.OutOfDeviceMemory as error:
        if error.limit_bytes != limit or not error.requested_bytes:
            raise SystemExit(f"wrong facts: {vars(error)}") from error
        caught["OutOfDeviceMemory"] += 1
    except RuntimeError:
        assert dpmem.last_out_of_memory().limit_bytes == limit
        caught["RuntimeError"] += 1
    del kept
    assert float(dpnp.ones(10).sum()) == 10.0
dpmem.empty_cache()
print(caught, dpmem.memory_reserved(), dpmem.memory_allocated())
