# A cache of the usual size that sees three keys, many times.
import functools

import dpnp


@functools.lru_cache
def grid(size):
    return dpnp.linspace(0, 1, size)


total = dpnp.zeros(())
for i in range(60):
    total += grid((10_000, 20_000, 30_000)[i % 3])[-1]
print(float(total))
