import dpnp
import numpy


def norm(x):
    if isinstance(x, dpnp.ndarray):
        return dpnp.sqrt(dpnp.sum(x * x))
    return numpy.sqrt(numpy.sum(x * x))


def convert(x):
    x = dpnp.asnumpy(x) if isinstance(x, dpnp.ndarray) else x
    return numpy.asarray(x)


def rebind(x: dpnp.ndarray):
    x = x.asnumpy()
    return numpy.cos(x)
