"""One GPU that Level Zero and OpenCL both show, and the CPU: what either holds takes the other's room."""

import dpctl
import dpctl.memory
import simulated_controls as controls
from known_truth import expect

import dpmem

GIB = 1 << 30
names = ["level_zero:gpu:0", "opencl:gpu:0", "opencl:cpu:0"]
queues = [dpctl.SyclQueue(name) for name in names]
room = queues[0].sycl_device.global_mem_size
dpmem.start()
blocks = [dpctl.memory.MemoryUSMDevice(number * GIB, queue=queue) for number, queue in enumerate(queues, 1)]
expect("each by its own name", [dpmem.memory_allocated(name) // GIB for name in names], [1, 2, 3])
expect("as the device counts", controls.used(), 3 * GIB)
gpu = next(device for device in dpmem.devices() if device.filter == names[0])
expect("one device", (gpu.also, gpu.integrated, gpu.capacity_bytes), ([names[1]], True, room))
info = dpmem.mem_get_info(names[0])
expect("it has no more of the host's memory than its driver gives", (info.total, info.free <= room), (room, True))
expect("at most free", info.free_at_most_bytes, room - GIB)
del blocks[:]
expect("nothing left", [dpmem.memory_allocated(name) for name in names] + [controls.used()], [0, 0, 0, 0])
