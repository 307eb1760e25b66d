import dpnp
import numpy


class Model:
    def __init__(self):
        self.weights = numpy.ones(1000)

    def run(self, x: dpnp.ndarray, steps):
        for _ in range(steps):
            x += dpnp.array(self.weights, dtype=dpnp.float64)  #! DPM401 dpnp.array(self.weights, dtype=dpnp.float64)
        return x


x = Model().run(dpnp.zeros(1000), 30)
