import dpnp
import numpy

x = dpnp.zeros(100)
pair = numpy.array([1.0, 2.0])
for i in range(100):
    x += dpnp.asarray(i)
    x += dpnp.asarray(0.5)
    x[:2] += dpnp.asarray(pair)
    x[:2] += dpnp.asarray([1.0, 2.0])
