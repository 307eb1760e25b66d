import dpnp as np
import numpy


def run(steps, bias: numpy.ndarray):
    x = np.zeros(100)
    # one step at a time
    for step in range(steps):
        np.add(x, np.asarray(bias), out=x)  #! DPM401 np.asarray(bias)
    return x


x = run(25, numpy.ones(100))
