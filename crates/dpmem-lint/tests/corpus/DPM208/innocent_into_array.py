import dpnp
import numpy

x = dpnp.arange(100)
out = numpy.empty((50, 100))
for i in range(50):
    dpnp.multiply(x, 2, out=x)
    out[i] = x.asnumpy()
    total = x.asnumpy().sum()
