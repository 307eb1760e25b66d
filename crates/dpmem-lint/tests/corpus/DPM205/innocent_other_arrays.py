import functools

import numpy

TABLES = {}


@functools.lru_cache
def window(n):
    return numpy.hanning(n)


def table(n, base=numpy.ones(1024)):
    TABLES[n] = numpy.arange(n)
    return TABLES[n] + base.sum()


import dpnp  # the arrays above are NumPy's
