import math

import dpnp
import numpy

x = dpnp.ones(100, dtype=dpnp.float32)
a = x * 0.5 + 3
b = x * math.sqrt(2) * numpy.pi * dpnp.e
c = x * float(numpy.float64(2))
d = x * numpy.float32(2)
