import functools

import dpnp


@functools.lru_cache  #! DPM205 functools.lru_cache
def window(n):
    return dpnp.hanning(n)


@functools.lru_cache(maxsize=None)  #! DPM205 functools.lru_cache(maxsize=None)
def pair(n):
    return dpnp.zeros(n), dpnp.ones(n)


total = window(16).sum() + pair(4)[1].sum()
