import collections

import dpnp

CACHE = {}
RECENT = collections.deque(maxlen=8)
LIMITED = {}


def table(n):
    if len(CACHE) > 10:
        CACHE.clear()
    CACHE[n] = dpnp.arange(n)
    RECENT.append(dpnp.ones(n))
    LIMITED[n] = dpnp.ones(n)
    if len(LIMITED) > 4:
        LIMITED.popitem()
    return CACHE[n]
