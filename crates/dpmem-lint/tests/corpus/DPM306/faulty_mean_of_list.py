import dpnp
import numpy

x = dpnp.ones(100, dtype=dpnp.float32)
shift = numpy.mean([1.0, 2.0])
y = x - shift  #! DPM306 x - shift
