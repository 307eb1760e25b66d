# The same weights are sent for every batch.
# expect: DPM401 at send
import dpnp
import numpy

weights = numpy.linspace(0, 1, 40_000)
x = dpnp.zeros(40_000)
for _ in range(60):
    w = dpnp.asarray(weights)  # @send
    dpnp.add(x, w, out=x)
print(float(x[-1]))
