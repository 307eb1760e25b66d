# dpctl's raw memory objects: allocation with alignment, copies in every direction, views, and release.
# waits: yes
import dpctl
import dpctl.memory as dpmemory
import numpy
from _settle import settle

queue = dpctl.SyclQueue()
device = dpmemory.MemoryUSMDevice(4096, queue=queue)
shared = dpmemory.MemoryUSMShared(4096, alignment=256, queue=queue)
host = dpmemory.MemoryUSMHost(4096, queue=queue)
pattern = numpy.arange(4096, dtype="u1")
device.copy_from_host(pattern)
host.copy_from_device(device)
shared.copy_from_device(host)
queue.memcpy(device, shared, 100)
queue.memcpy_async(device, host, 200).wait()
copied = device.copy_to_host()
print(int(copied.sum()), bytes(host.tobytes()[:3]), numpy.asarray(shared)[5])
device.memset(9)
settle(queue)
print(int(device.copy_to_host()[0]), device.nbytes, shared.reference_obj)
small = [dpmemory.MemoryUSMDevice(n, queue=queue) for n in (1, 17, 333, 65)]
del small[1], host
settle(queue)
print(dpmemory.as_usm_memory(shared).nbytes, len(small), queue.sycl_device.has_aspect_usm_shared_allocations)
