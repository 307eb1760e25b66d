import dpnp
import numpy


def sweep(n):
    mask = numpy.linspace(0, 1, 64)
    out = dpnp.zeros(64)
    for i in range(n):
        for j in range(n):
            m = dpnp.asarray(mask)  #! DPM401 dpnp.asarray(mask)
            dpnp.multiply(m, i + j, out=out)
    return out


out = sweep(5)
