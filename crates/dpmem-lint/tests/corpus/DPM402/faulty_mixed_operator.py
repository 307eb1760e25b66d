import dpnp
import numpy


def scaled(n):
    x = dpnp.ones(n)
    h = numpy.ones(n)
    y = x * h  #! DPM402 x * h
    x += h  #! DPM402 x += h
    return y, h < x  #! DPM402 h < x
