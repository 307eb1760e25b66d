import dpnp
import numpy


async def serve(requests, lock):
    table = numpy.ones(4096)
    async for request in requests:
        async with lock:
            t = dpnp.asarray(table)  #! DPM401 dpnp.asarray(table)
            print(t.shape, request)
