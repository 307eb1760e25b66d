import dpctl
import dpnp

q1 = dpctl.SyclQueue()
a = dpnp.ones(3, sycl_queue=q1)
b = dpnp.ones(3)
if a.sycl_queue != b.sycl_queue:
    b = dpnp.ones(3, sycl_queue=q1)
else:
    a = dpnp.ones(3)
c = a + b
