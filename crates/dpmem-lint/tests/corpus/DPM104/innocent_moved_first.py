import dpctl
import dpnp

a = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())
b = dpnp.ones(3)
c = a + b.to_device(a.sycl_queue)
d = dpnp.asarray(a, sycl_queue=b.sycl_queue) + b
e = a * 2 + 1.5
