import dpnp
import numpy

x = dpnp.ones(100, dtype=dpnp.complex64)
a = x * numpy.float32(2)
b = dpnp.ones(100, dtype="f4") * numpy.int8(3)
c = dpnp.ones(100, dtype="f4") + dpnp.array(True)
d = dpnp.ones(10, dtype="i4") * 2.5
