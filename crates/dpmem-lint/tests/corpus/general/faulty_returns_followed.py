import dpnp
import numpy


def make(n):
    return dpnp.ones(n)


def host(n) -> numpy.ndarray:
    return load(n)


def kind(x: "dpnp.ndarray | None", h: numpy.ndarray = None):
    return x


a = make(3)
b = host(3)
c = a + b  #! DPM402 a + b
d = numpy.cos(kind(a))
