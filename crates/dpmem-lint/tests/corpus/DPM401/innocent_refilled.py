import dpnp
import numpy


def read(stream, n):
    buffer = numpy.empty(n)
    view = memoryview(buffer)
    x = dpnp.zeros(n)
    while stream.readinto(buffer):
        x += dpnp.asarray(buffer)
    for i in range(n):
        buffer[:] = i
        x += dpnp.asarray(buffer)
    alias = buffer[:10]
    for i in range(n):
        alias[0] = i
        x += dpnp.asarray(buffer)
    return x, view
