# Coroutines hand arrays to each other through a bounded queue.
import asyncio

import dpnp
import numpy


async def produce(queue):
    rng = numpy.random.default_rng(4)
    for _ in range(22):
        await queue.put(dpnp.asarray(rng.random(15_000)))
    await queue.put(None)


async def consume(queue):
    total = dpnp.zeros(15_000)
    while (batch := await queue.get()) is not None:
        total += batch
    return float(total.mean())


async def main():
    queue = asyncio.Queue(maxsize=2)
    producer = asyncio.create_task(produce(queue))
    mean = await consume(queue)
    await producer
    return mean


print(asyncio.run(main()))
