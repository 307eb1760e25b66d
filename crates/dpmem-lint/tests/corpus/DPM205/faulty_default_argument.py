import dpnp


def convolve(x, kernel=dpnp.ones(1024)):  #! DPM205 dpnp.ones(1024)
    return dpnp.convolve(x, kernel)


async def later(x, *, table=dpnp.arange(256) * 2):  #! DPM205 dpnp.arange(256) * 2
    return x + table
