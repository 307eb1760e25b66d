import dpnp
import numpy


def step(xp, a, b, n):
    for _ in range(n):
        c = xp.add(a, b)
        d = a + b
    return c, d


xp = dpnp if numpy.random.rand() > 0.5 else numpy
a = xp.ones(10)
for _ in range(100):
    b = a + a
