# A producer thread makes blocks and hands them through a queue to a consumer thread that drops them.
# waits: no
import queue
import threading

import dpnp

line = queue.Queue(maxsize=4)
seen = []


def produce():
    for i in range(40):
        line.put(dpnp.full(200 + 10 * i, 1.0))
    line.put(None)


def consume():
    while (block := line.get()) is not None:
        seen.append(float(block.sum()))
        del block


dpnp.full(10, 1.0).sum()
threads = [threading.Thread(target=produce), threading.Thread(target=consume)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(seen))
