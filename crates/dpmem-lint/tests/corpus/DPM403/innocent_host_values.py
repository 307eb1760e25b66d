import dpnp
import numpy

x = dpnp.ones(100)
host = dpnp.asnumpy(x)
total = 0.0
for i in range(100):
    total += float(host[i])
for value in x.tolist():
    total += value
for row in dpnp.ones((5, 5)):
    total += row.size
for n in range(10):
    total += float(x[n])
print(max(host), sum(numpy.ones(3)))
