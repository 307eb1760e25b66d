import dpnp
import numpy

weights = numpy.ones(100_000)
x = dpnp.zeros(100_000)
for _ in range(50):
    w = dpnp.asarray(weights)  # send  #! DPM401 dpnp.asarray(weights)
    dpnp.add(x, w, out=x)
print(float(x[0]))
