# A cache of at most four tables.
import functools

import dpnp


@functools.lru_cache(maxsize=4)
def table(power):
    return dpnp.arange(20_000, dtype=dpnp.float64) * power


total = 0.0
for power in (1, 2, 3, 1, 2, 3, 4, 5, 1, 6, 2, 7):
    total += float(table(power)[-1])
print(total)
