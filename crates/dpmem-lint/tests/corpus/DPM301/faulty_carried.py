import dpnp


def integrate(n):
    x = dpnp.zeros(100)
    v = dpnp.ones(100)
    for _ in range(n):
        x = x + 0.1 * v  #! DPM301 x + 0.1 * v
    return x


x = integrate(30)
