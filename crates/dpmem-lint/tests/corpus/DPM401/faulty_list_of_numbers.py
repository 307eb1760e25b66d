import dpnp

TAPS = [0.1, 0.2, 0.4, 0.2, 0.1, 0.0]


def smooth(x: dpnp.ndarray, steps):
    for _ in range(steps):
        dpnp.copyto(x, dpnp.convolve(x, dpnp.array(TAPS), mode="same"))  #! DPM401 dpnp.array(TAPS)
    return x


x = smooth(dpnp.arange(100.0), 21)
