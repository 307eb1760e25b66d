# numpy.sqrt(2.0) is a float64 that counts; the float32 image becomes float64.
# expect: DPM306 at scale
import dpnp
import numpy

image = dpnp.ones((500, 600), dtype=dpnp.float32)
bright = image * numpy.sqrt(2.0)  # @scale
print(bright.dtype, float(bright[0, 0]))
