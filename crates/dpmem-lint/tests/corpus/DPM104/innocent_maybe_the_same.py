import dpctl
import dpnp


def f(device, queue=None):
    a = dpnp.ones(3, device=device)
    b = dpnp.ones(3)
    c = dpnp.ones(3, device="cpu")
    d = dpnp.ones(3, device="opencl:cpu:0")
    return a + b, b + c, c + d, dpnp.ones(3, sycl_queue=queue) + b
