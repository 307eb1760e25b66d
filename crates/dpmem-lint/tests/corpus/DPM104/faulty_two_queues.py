import dpctl
import dpnp

a = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())
b = dpnp.ones(3, sycl_queue=dpctl.SyclQueue())
c = a + b  #! DPM104 a + b
