# A deque keeps the last four frames only.
import collections

import dpnp
import numpy

rng = numpy.random.default_rng(5)
window = collections.deque(maxlen=4)
average = dpnp.zeros((120, 160), dtype=dpnp.float32)
for _ in range(40):
    frame = rng.random((120, 160), dtype=numpy.float32)
    window.append(dpnp.asarray(frame))
    average[...] = 0
    for kept in window:
        dpnp.add(average, kept, out=average)
print(float(average.max()))
