import dpctl
import dpnp


class Pair:
    def __init__(self):
        self.left = dpnp.ones(8, sycl_queue=dpctl.SyclQueue("cpu"))
        self.right = dpnp.ones(8, sycl_queue=dpctl.SyclQueue("cpu"))

    def total(self):
        return dpnp.sum(self.left * self.right)  #! DPM104 self.left * self.right
