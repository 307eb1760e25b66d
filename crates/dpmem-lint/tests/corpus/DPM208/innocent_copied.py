import dpnp
import numpy

results = []
x = dpnp.arange(100)
for i in range(50):
    dpnp.multiply(x, 2, out=x)
    results.append(dpnp.asnumpy(x).copy())
    results.append(numpy.array(x.asnumpy()))
