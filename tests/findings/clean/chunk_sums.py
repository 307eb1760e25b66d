# Thirty chunks come from the host, each is reduced to one number.
import dpnp
import numpy

CHUNK = 20_000
host = numpy.random.default_rng(3).random(30 * CHUNK)

total = 0.0
for start in range(0, host.size, CHUNK):
    chunk = dpnp.asarray(host[start : start + CHUNK])
    total += float(dpnp.sum(chunk))
print(total / host.size)
