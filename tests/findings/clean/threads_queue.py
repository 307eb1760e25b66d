# A loader thread feeds a bounded queue; the main thread consumes.
import queue
import threading

import dpnp
import numpy

ready = queue.Queue(maxsize=2)


def load():
    rng = numpy.random.default_rng(11)
    for _ in range(24):
        ready.put(rng.random(40_000, dtype=numpy.float32))
    ready.put(None)


loader = threading.Thread(target=load)
loader.start()
sums = dpnp.zeros(40_000, dtype=dpnp.float32)
while (batch := ready.get()) is not None:
    on_device = dpnp.asarray(batch)
    dpnp.add(sums, on_device, out=sums)
loader.join()
print(float(sums.mean()))
