import dpnp


def simulate(steps):
    a = dpnp.arange(1000, dtype=dpnp.float64)
    b = dpnp.ones(1000, dtype=dpnp.float64)
    for _ in range(steps):
        c = dpnp.add(a, b)  #! DPM301 dpnp.add(a, b)
    return float(c[10])


result = simulate(40)
