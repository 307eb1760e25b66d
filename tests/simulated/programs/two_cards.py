# Arrays and memory objects on every device by turns, each with its own sizes; some are kept on each.
# waits: yes
import dpctl
import dpctl.memory
import dpnp
from dpctl.utils import SequentialOrderManager

queues = [dpctl.SyclQueue(device) for device in dpctl.get_devices()]


def settle():
    for manager in SequentialOrderManager._map.get().values():
        manager.wait()


# The second device comes first: numbers given in the order of use are not those of the list.
kept = [dpctl.memory.MemoryUSMShared(4096 * (place + 1), queue=queue) for place, queue in enumerate(reversed(queues))]
for place, queue in enumerate(queues, 1):
    x = dpnp.arange(1000 * place, dtype="f8", sycl_queue=queue)
    settle()
    y = x * 2
    settle()
    kept.append(y)
    kept.append(dpctl.memory.MemoryUSMDevice(10_000 + place, queue=queue))
    print(place, float(y.sum()))
    settle()
    del x
for queue in queues:
    block = dpctl.memory.MemoryUSMDevice(1 << 20, queue=queue)
    print(block.sycl_device.filter_string)
    del block
try:
    dpctl.memory.MemoryUSMDevice(1 << 45, queue=queues[-1])
except dpctl.memory.USMAllocationError:
    print("refused")
del kept[::3]
settle()
