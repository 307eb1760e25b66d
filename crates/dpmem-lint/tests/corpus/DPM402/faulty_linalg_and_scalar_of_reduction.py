import dpnp
import numpy

a = dpnp.ones((4, 4))
length = numpy.linalg.norm(a)  #! DPM402 numpy.linalg.norm(a)
root = numpy.sqrt(a.sum())  #! DPM402 numpy.sqrt(a.sum())
