# Each of four threads owns its buffers and returns a Python number.
import concurrent.futures

import dpnp


def work(seed):
    x = dpnp.full(60_000, 1.0 + seed)
    y = dpnp.empty_like(x)
    for _ in range(10):
        dpnp.multiply(x, 1.01, out=y)
        x, y = y, x
    return float(dpnp.sum(x))


# Once alone: dpnp can deadlock where several threads are the first to use a function.
work(0)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(work, range(8))))
