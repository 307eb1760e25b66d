import collections

import dpnp


def window(n):
    a = dpnp.ones(1000)
    recent = collections.deque(maxlen=10)
    queue = []
    for _ in range(n):
        recent.append(a.sum())
        queue.append(a.max())
        if len(queue) > 5:
            queue.pop()
    rows = []
    for _ in range(n):
        rows.append(a.reshape(10, 100))
    return recent, rows
