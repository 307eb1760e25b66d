# A monitor reads one item after the other.
# expect: DPM403 at item
import threading

import dpnp

counts = dpnp.arange(256, dtype=dpnp.int32)
counts.sycl_queue.wait()
seen = []


def monitor():
    for i in range(counts.size):
        seen.append(counts[i].item())  # @item


thread = threading.Thread(target=monitor)
thread.start()
thread.join()
print(sum(seen))
