import dpnp
import numpy

host = numpy.empty(4)
x = dpnp.ones(4)
host[:] = x  #! DPM402 host[:] = x
