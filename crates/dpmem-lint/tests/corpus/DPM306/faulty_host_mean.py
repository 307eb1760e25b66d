import dpnp
import numpy

host = numpy.ones(50)
x = dpnp.asarray(host.astype(numpy.float32))
y = x * host.mean()  #! DPM306 x * host.mean()
z = dpnp.where(x > 0, x, numpy.float64(0))  #! DPM306 dpnp.where(x > 0, x, numpy.float64(0))
