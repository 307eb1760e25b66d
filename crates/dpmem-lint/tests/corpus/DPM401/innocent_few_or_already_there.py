import dpnp
import numpy

weights = numpy.ones(1000)
on_device = dpnp.asarray(weights)
x = dpnp.zeros(1000)
for _ in range(3):
    x += dpnp.asarray(weights)
for _ in range(100):
    x += dpnp.asarray(on_device)
