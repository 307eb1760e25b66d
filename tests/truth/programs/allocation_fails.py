# Allocations of every kind that the device refuses, caught, between others that succeed.
# waits: yes
import dpctl
import dpctl.memory as dpmemory
import dpnp
from _settle import settle


def refusal(error):
    """What the program sees, whether or not the error explains itself."""
    return "USMAllocationError" if isinstance(error, dpmemory.USMAllocationError) else type(error).__name__


queue = dpctl.SyclQueue()
too_much = 4 * queue.sycl_device.max_mem_alloc_size
kept = []
for memory in (dpmemory.MemoryUSMDevice, dpmemory.MemoryUSMShared, dpmemory.MemoryUSMHost):
    kept.append(memory(1000, queue=queue))
    try:
        memory(too_much, queue=queue)
    except Exception as error:
        print(memory.__name__, refusal(error))
settle(queue)
for kind in ("device", "shared", "device"):
    try:
        dpnp.empty(too_much, dtype="u1", usm_type=kind)
    except Exception as error:
        print(kind, refusal(error))
x = dpnp.ones(100)
settle(x)
try:
    dpnp.tile(x, too_much // 800)
except Exception as error:
    print(refusal(error))
settle(x)
print(float(x.sum()), len(kept))
settle(x)
