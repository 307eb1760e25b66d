# Everything is float32, Python numbers stay weak.
import math

import dpnp
import numpy

x = dpnp.linspace(0, 1, 80_000, dtype=dpnp.float32)
scale = numpy.float32(0.5)
y = x * 2.0
z = y * scale
w = z + math.pi
centre = w - w.mean()
assert centre.dtype == dpnp.float32
print(float(centre.max()))
