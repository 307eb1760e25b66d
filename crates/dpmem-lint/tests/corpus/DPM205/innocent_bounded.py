import functools

import dpnp


@functools.lru_cache(maxsize=4)
def window(n):
    return dpnp.hanning(n)


@functools.lru_cache
def size(n):
    return n * n


@functools.cache
def cleared(n):
    return dpnp.ones(n)


cleared(4)
cleared.cache_clear()
