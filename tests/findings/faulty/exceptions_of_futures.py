# The futures of failed jobs are kept to be looked at later.
# expect: DPM203 at data
# allow: DPM201 at data
import concurrent.futures

import dpnp

dpnp.ones(8).sum().sycl_queue.wait()


def job(i):
    data = dpnp.ones(1_000_000 + i, dtype=dpnp.float32)  # @data
    if data.size % 2:
        raise ArithmeticError(f"odd size {data.size}")
    return data.size


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    futures = [pool.submit(job, i) for i in range(8)]
failed = [future for future in futures if future.exception()]
del futures
print(len(failed), "jobs failed")
