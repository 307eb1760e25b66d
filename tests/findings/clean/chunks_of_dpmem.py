# Data go through the device in chunks, on buffers that are used again; each is reduced to one number.
import dpnp
import numpy

import dpmem

host = numpy.random.default_rng(3).random((30, 20_000))

total, largest = 0.0, 0.0
for _, x in dpmem.chunks(host, 1):
    total += float(dpnp.sum(x))
    largest = max(largest, float(x.max()))
print(total / host.size, largest)
