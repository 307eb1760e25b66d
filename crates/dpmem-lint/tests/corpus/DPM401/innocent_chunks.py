import dpnp
import numpy


def chunked(names, big: numpy.ndarray, n):
    device = dpnp.empty(n)
    total = 0.0
    for name in names:
        device[...] = dpnp.asarray(numpy.load(name))
        total += float(dpnp.sum(device))
    for start in range(0, 10 * n, n):
        device[...] = dpnp.asarray(big[start : start + n])
    for row in big:
        device[...] = dpnp.asarray(row)
    return total
