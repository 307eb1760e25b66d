# The loop runs in a worker thread.
# expect: DPM301 at mix
# allow: DPM207 at mix
import threading

import dpnp

left = dpnp.ones(200_000, dtype=dpnp.float32)
right = dpnp.ones(200_000, dtype=dpnp.float32)


def mix(results):
    out = left
    for _ in range(100):
        out = dpnp.maximum(out, right)  # @mix
    results.append(out.sum())


results = []
worker = threading.Thread(target=mix, args=(results,))
worker.start()
worker.join()
print(float(results[0]))
