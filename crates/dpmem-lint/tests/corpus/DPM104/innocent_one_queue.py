import dpctl
import dpnp

queue = dpctl.SyclQueue()
a = dpnp.ones(3, sycl_queue=queue)
b = dpnp.ones(3, sycl_queue=queue)
c = a + b
d = c * dpnp.zeros(3, sycl_queue=a.sycl_queue)
