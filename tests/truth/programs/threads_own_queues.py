# A pool of threads, a queue for each task; memory allocated in a task is freed by the main thread.
# waits: no
from concurrent.futures import ThreadPoolExecutor

import dpctl
import dpnp
import numpy


def task(i):
    queue = dpctl.SyclQueue()
    x = dpnp.asarray(numpy.arange(300.0 * (i + 1))[::2], sycl_queue=queue)
    y = dpnp.sqrt(x) + x
    return y, dpnp.asnumpy(y).sum()


task(0)
with ThreadPoolExecutor(3) as pool:
    results = list(pool.map(task, range(24)))
print(round(sum(total for _, total in results), 3))
del results[5:]
