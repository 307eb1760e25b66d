# Two queues; data changes sides by an explicit copy.
import dpctl
import dpnp

first, second = dpctl.SyclQueue(), dpctl.SyclQueue()
a = dpnp.arange(30_000, dtype=dpnp.float64, sycl_queue=first)
b = dpnp.ones(30_000, dtype=dpnp.float64, sycl_queue=second)
c = b.to_device(first)
dpnp.add(a, c, out=a)
print(float(a[-1]))
