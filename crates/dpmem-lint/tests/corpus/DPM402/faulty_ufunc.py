import dpnp
import numpy

x = dpnp.linspace(0, 1, 100)
y = numpy.sin(x)  #! DPM402 numpy.sin(x)
