# A few numbers of each result are copied out of the host array; the rest is let go.
import dpnp
import numpy

state = dpnp.zeros(100_000)
rows = []
for _ in range(25):
    for _ in range(4):
        state += 1
    rows.append(numpy.array(state.asnumpy()[:10]))
print(len(rows), rows[-1][0])
