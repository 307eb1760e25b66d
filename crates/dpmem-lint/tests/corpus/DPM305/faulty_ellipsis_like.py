import dpnp as np


def scaled(a: np.ndarray):
    out = np.ones_like(a)  #! DPM305 np.ones_like(a)
    # the comment stays
    out[...] = a * 3
    return out


out = scaled(np.arange(10))
