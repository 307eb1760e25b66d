# Several contexts over one device and over its sub-devices; memory of each, and copies from one to another.
# waits: no
import dpctl
import dpctl.memory as dpmemory
import dpnp

device = dpctl.SyclDevice()
contexts = [dpctl.SyclContext([device]), dpctl.SyclContext(device)]
parts = device.create_sub_devices(partition=1) if device.max_compute_units > 1 else [device]
contexts.append(dpctl.SyclContext(parts[0]))
queues = [dpctl.SyclQueue(contexts[0], device), dpctl.SyclQueue(contexts[1], device)]
queues.append(dpctl.SyclQueue(contexts[2], parts[0]))
blocks = []
for size, queue in zip((1000, 2000, 3000), queues, strict=True):
    x = dpnp.ones(size, sycl_queue=queue)
    y = x + x
    print(float(y.sum()))
    blocks.append(y)
source = dpmemory.MemoryUSMDevice(512, queue=queues[0])
source.memset(3)
target = dpmemory.MemoryUSMHost(512, queue=queues[2])
target.copy_from_device(source)
print(int(target.copy_to_host().sum()))
del queues, contexts, blocks[0]
