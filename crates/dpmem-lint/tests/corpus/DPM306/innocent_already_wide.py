import dpnp
import numpy

x = dpnp.ones(100)
a = x * numpy.float64(0.5)
b = x - dpnp.array(1.0)
counts = dpnp.ones(10, dtype="i8")
c = counts + numpy.int64(3)
d = counts * numpy.float64(2)
