import dpnp
import numpy

x = dpnp.ones(3)
h = numpy.zeros(3)
a = numpy.concatenate([h, x])  #! DPM402 numpy.concatenate([h, x])
b = dpnp.stack((x, h))  #! DPM402 dpnp.stack((x, h))
