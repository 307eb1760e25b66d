import dpctl
import dpctl.tensor as dpt


async def mix():
    q1, q2 = dpctl.SyclQueue(), dpctl.SyclQueue()
    x = dpt.ones(4, sycl_queue=q1)
    y = dpt.ones(4, sycl_queue=q2)
    return dpt.multiply(x, y)  #! DPM104 dpt.multiply(x, y)
