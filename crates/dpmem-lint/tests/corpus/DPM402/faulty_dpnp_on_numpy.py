import dpnp
import numpy

h = numpy.arange(10.0)
a = dpnp.sqrt(h)  #! DPM402 dpnp.sqrt(h)
b = dpnp.add(dpnp.ones(10), h)  #! DPM402 dpnp.add(dpnp.ones(10), h)
c = dpnp.sum(h)  #! DPM402 dpnp.sum(h)
