import dpnp
import numpy

a = dpnp.ones(4)
b = dpnp.ones(4)
same = numpy.array_equal(a, b)  #! DPM402 numpy.array_equal(a, b)
