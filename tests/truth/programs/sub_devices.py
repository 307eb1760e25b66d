# Work on each sub-device of the device (on the device itself where it cannot be divided).
# waits: no
import dpctl
import dpnp

device = dpctl.SyclDevice()
try:
    parts = device.create_sub_devices(partition=1)
except Exception:
    parts = [device]
kept = []
for i, part in enumerate(parts[:2]):
    queue = dpctl.SyclQueue(part)
    x = dpnp.arange(1000 * (i + 1), dtype="f4", sycl_queue=queue)
    for _ in range(3):
        x = x * 0.5 + 1
    kept.append(x)
    s = dpnp.ones(64, sycl_queue=queue, usm_type="shared")
    h = dpnp.ones(32, sycl_queue=queue, usm_type="host")
    print(round(float(s.sum() + h.sum()), 3))
print([x.dtype.name for x in kept])
