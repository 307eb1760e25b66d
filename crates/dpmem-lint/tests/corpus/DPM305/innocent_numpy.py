import dpnp
import numpy

x = numpy.zeros(100)
x[:] = 2
y = dpnp.empty(100)
y[:] = 3
