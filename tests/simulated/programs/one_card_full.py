"""One card is full, by a limit and then really; allocations on the other go on."""

import sys

import dpctl
import dpctl.memory
import dpnp
import simulated_controls as controls
from known_truth import expect, settle

import dpmem

MIB = 1 << 20
how, *names = sys.argv[1:]
pooled = how == "pool"
first, second = (dpctl.SyclQueue(name) for name in names)


def request(mebibytes, queue):
    try:
        return dpctl.memory.MemoryUSMDevice(mebibytes * MIB, queue=queue)
    except Exception as error:
        return error


def reserved():
    return [dpmem.memory_reserved(name) // MIB for name in names]


def was_served(it):
    return type(it).__name__ == "MemoryUSMDevice"


if pooled:
    dpmem.enable_pool("2GiB")
expect("the limit before", dpmem.set_memory_limit(128 * MIB, names[1]), (2 << 30) if pooled else None)
held = request(96, second)
refused = request(64, second)
expect("refused", type(refused).__name__, "OutOfDeviceMemory")
facts = (refused.device, refused.requested_bytes, refused.limit_bytes, refused.free_bytes)
expect("why", facts, (names[1], 64 * MIB, 128 * MIB, controls.free(1)))
expect("by whom", [place["holders"] for place in refused.holders], [["__main__.held"]])
large = request(512, first)
expect("the first goes on", was_served(large), True)
expect("reserved", reserved(), [512, 96])
del held
expect("reserved when it is gone", reserved(), [512, 96 if pooled else 0])
expect("allocated", [dpmem.memory_allocated(name) for name in names], [512 * MIB, 0])
held = request(128, second)
expect("what is cached gives way", was_served(held), True)
del held
other = request(128, first)
expect("what the second has cached is not the first's", reserved(), [640, 128 if pooled else 0])
expect("emptied", dpmem.empty_cache(), 128 * MIB if pooled else 0)
expect("as the devices count", [controls.used(0) // MIB, controls.used(1) // MIB], [640, 0])

x = dpnp.ones(8 * MIB, dtype="f8", device=names[1])
settle()
try:
    (x + 1) * 2 + x
    expect("a temporary beyond the limit", "was served", "refused")
except Exception:
    last = dpmem.last_out_of_memory()
    expect("a temporary beyond the limit", (last.device, last.requested_bytes), (names[1], 64 * MIB))
y = dpnp.ones(8 * MIB, dtype="f8", device=names[0])
expect("the first computes", float(((y + 1) * 2 + y)[-1]), 5.0)
expect("the limit back", dpmem.set_memory_limit(None, names[1]), 128 * MIB)
expect("the second computes", float(((x + 1) * 2 + x)[-1]), 5.0)
del x
settle()
dpmem.empty_cache()

controls.set_others((64 << 30) - 64 * MIB, 1)
refused = request(256, second)
expect("really full", type(refused).__name__, "OutOfDeviceMemory")
expect("its facts", (refused.device, refused.limit_bytes, refused.free_bytes), (names[1], None, 64 * MIB))
expect("what helps", "others hold about 63.9 GiB" in str(refused), True)
expect("the first is not", was_served(request(256, first)), True)
failures = [dpmem.memory_stats(name)["num_ooms"] for name in names]
expect("failures are the second's", (failures[0], failures[1] >= 3), (0, True))
dpmem.set_per_process_memory_fraction(0.25, names[0])
expect("a fraction of the first", dpmem.set_memory_limit(None, names[0]), 16 << 30)
