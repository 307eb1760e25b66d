"""Runs random operations on several threads, queues and contexts and prints a hash of all results.

    random_operations.py SEEDS THREADS OPERATIONS

Threads share nothing but the device, so what each computes does not depend on the others.
"""

import hashlib
import random
import sys
import threading

import dpctl
import dpnp
import numpy

FUNCTIONS = ("add", "multiply", "subtract")
REDUCTIONS = ("sum", "max", "min")


def warm_up(queue):
    """Use every function once, on one thread: the first use of one on several threads may lock up dpnp itself."""
    for dtype in ("f8", "i8"):
        x = dpnp.arange(64, dtype=dtype, sycl_queue=queue)
        for name in (*FUNCTIONS, *REDUCTIONS):
            getattr(dpnp, name)(*((x, x) if name in FUNCTIONS else (x,)))
        dpnp.concatenate((x[::2], x[1::2]))
        dpnp.cumsum(x) % 7, dpnp.sort(x), x[x > 3], x[:60].copy()
        dpnp.full(64, 7, dtype=dtype, sycl_queue=queue)
    # Of integers only, as in `work`: MKL's products of floats fail on simulated GPUs.
    dpnp.matmul(x.reshape(8, 8), x.reshape(8, 8))
    dpnp.asnumpy(x)


def work(seed, queues, operations, results):
    draw = random.Random(seed)
    numbers = numpy.random.default_rng(seed)
    queue = queues[seed % len(queues)]
    arrays = [dpnp.asarray(numbers.integers(-1000, 1000, 4096), sycl_queue=queue) for _ in range(4)]
    digest = hashlib.sha256()
    for _ in range(operations):
        x, y = draw.choice(arrays), draw.choice(arrays)
        n = min(x.size, y.size)
        kind = draw.randrange(8)
        if kind < 3:
            z = getattr(dpnp, FUNCTIONS[kind])(x[:n], y[:n]) % 1009
        elif kind == 3:
            z = dpnp.concatenate((x[::2], y[1::2]))
        elif kind == 4:
            z = dpnp.cumsum(x) % 1009
        elif kind == 5:
            z = dpnp.sort(x)
        elif kind == 6:
            side = int(n**0.5)
            z = (
                dpnp.matmul(x[: side * side].reshape(side, side), y[: side * side].reshape(side, side)).reshape(-1)
                % 1009
            )
        else:
            z = x[x > draw.randrange(-500, 500)]
            if z.size < 64:
                z = dpnp.arange(4096, dtype="i8", sycl_queue=queue)
        digest.update(str(int(getattr(dpnp, draw.choice(REDUCTIONS))(z))).encode())
        if z.size > 65536:
            z = z[:65536].copy()
        arrays[draw.randrange(len(arrays))] = z
        if draw.random() < 0.1:
            arrays[draw.randrange(len(arrays))] = dpnp.full(draw.randrange(64, 20000), 7, dtype="i8", sycl_queue=queue)
    for array in arrays:
        digest.update(dpnp.asnumpy(array).tobytes())
    results[seed] = digest.hexdigest()


def main(seeds, threads, operations):
    device = dpctl.SyclDevice()
    context = dpctl.SyclContext(device)
    queues = [dpctl.SyclQueue(device), dpctl.SyclQueue(device, property="in_order"), dpctl.SyclQueue(context, device)]
    for queue in queues:
        warm_up(queue)
    results = {}
    for first in range(0, seeds, threads):
        running = [
            threading.Thread(target=work, args=(seed, queues, operations, results))
            for seed in range(first, min(first + threads, seeds))
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    print(hashlib.sha256("".join(results[seed] for seed in range(seeds)).encode()).hexdigest())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
