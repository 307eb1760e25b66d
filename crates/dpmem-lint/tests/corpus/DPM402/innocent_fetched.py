import dpnp
import numpy

x = dpnp.linspace(0, 1, 100)
y = numpy.sin(dpnp.asnumpy(x))
z = numpy.asarray(x.asnumpy()) + y
x[:] = y
w = x * numpy.float64(2) * y.size
