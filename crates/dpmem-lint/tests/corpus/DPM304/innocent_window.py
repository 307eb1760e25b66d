import dpnp


def rolling(samples, n):
    window = dpnp.zeros(100)
    for sample in samples:
        window = dpnp.concatenate([window[1:], dpnp.asarray(sample)])
    return window
