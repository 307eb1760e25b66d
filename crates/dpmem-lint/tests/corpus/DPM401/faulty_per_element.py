import dpnp
import numpy

host = numpy.arange(100)
x = dpnp.zeros(100)
for i in range(100):
    x += dpnp.asarray(host[i])  #! DPM401 dpnp.asarray(host[i])
for i in range(100):
    host[i] = dpnp.asnumpy(x[i])  #! DPM401 dpnp.asnumpy(x[i])
