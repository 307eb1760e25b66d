import dpnp
import numpy


def total(names, source, n):
    square = dpnp.empty(n)
    result = 0.0
    for name in names:
        chunk = dpnp.asarray(numpy.load(name))
        dpnp.multiply(chunk, chunk, out=square)
        result += float(dpnp.sum(square))
    for start in range(0, 100 * n, n):
        dpnp.multiply(square, start, out=square)
        result += float(dpnp.sum(square))
    for batch in source:
        result += float(dpnp.sum(dpnp.asarray(batch)))
    return result
