import dpnp
import math


def outer(n):
    x = dpnp.ones((n, n))

    def inner():
        result = []
        for i in range(n):
            result.append(math.sqrt(x[i, i]))  #! DPM403 math.sqrt(x[i, i])
        return result

    return inner()
