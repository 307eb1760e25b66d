# Results kept by lru_cache, a default argument, a closure, a dict and a partial; some are let go of.
# waits: no
import functools

import dpnp


@functools.lru_cache(maxsize=4)
def basis(n):
    return dpnp.cos(dpnp.arange(n, dtype="f8") / n)


def remember(x, seen=[]):  # noqa: B006
    seen.append(x * 2)
    return len(seen)


def scaler(n):
    table = dpnp.full(n, 3.0)
    return lambda i: float(table[i])


for n in (100, 200, 300, 400, 500, 600, 100):
    remember(basis(n))
scale = scaler(1000)
by_name = {f"block{i}": dpnp.ones(10 * i + 1) for i in range(10)}
halve = functools.partial(dpnp.multiply, dpnp.full(50, 0.5))
print(scale(5), float(halve(dpnp.ones(50)).sum()), basis.cache_info().currsize, remember(dpnp.ones(3)))
for name in list(by_name)[::2]:
    by_name.pop(name)
basis.cache_clear()
