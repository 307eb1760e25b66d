import dpnp
import numpy

SCALE = numpy.sqrt(2)
x = dpnp.arange(10, dtype="float32")
y = dpnp.multiply(x, SCALE)  #! DPM306 dpnp.multiply(x, SCALE)
