import dpnp
import numpy


def doubled(parts):
    host = numpy.zeros(0)
    names = []
    for part in parts:
        both = dpnp.concatenate([part, part])
        print(both.shape)
        host = numpy.concatenate([host, numpy.ones(3)])
        names = names + ["x"]
    return host
