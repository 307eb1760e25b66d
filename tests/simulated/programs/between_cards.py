# Data goes from each device to each other one, by arrays and by memory objects, and through host memory.
# waits: no
import dpctl
import dpctl.memory
import dpnp
import numpy

devices = dpctl.get_devices()
arrays = [dpnp.arange(5000, dtype="i8", device=device) + place for place, device in enumerate(devices)]
for source in arrays:
    for device in devices:
        moved = source.to_device(device)
        print(moved.sycl_device.filter_string, int(moved[-1]))
        arrays[0] = arrays[0] + 0
for device in devices:
    queue = dpctl.SyclQueue(device)
    host, there = dpctl.memory.MemoryUSMHost(800, queue=queue), dpctl.memory.MemoryUSMDevice(800, queue=queue)
    host.copy_from_host(numpy.arange(100, dtype="i8").view("u1"))
    there.copy_from_device(host)
    print(there.copy_to_host().view("i8").sum())
