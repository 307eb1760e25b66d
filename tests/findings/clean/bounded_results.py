"""A window of the last results: older ones go as new ones come."""

import collections

import dpnp

recent = collections.deque(maxlen=4)
x = dpnp.ones(50_000)
for step in range(60):
    recent.append(dpnp.multiply(x, step))
    recent[-1].sycl_queue.wait()
print(len(recent), float(sum(recent)[0]))
