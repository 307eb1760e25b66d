try:
    import dpnp
except ImportError:
    dpnp = None
import numpy

x = dpnp.ones(10)
y = numpy.exp(x)  #! DPM402 numpy.exp(x)
