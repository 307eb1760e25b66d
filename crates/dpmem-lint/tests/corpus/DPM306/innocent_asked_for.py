import dpnp
import numpy

x = dpnp.ones(100, dtype=dpnp.float32)
out = dpnp.empty(100, dtype=dpnp.float32)
a = dpnp.multiply(x, numpy.float64(2), dtype=dpnp.float32)
b = x * dpnp.array(2.0, dtype=x.dtype)
c = x * dpnp.asarray(2.0, dtype="f4")
x *= numpy.float64(2)
