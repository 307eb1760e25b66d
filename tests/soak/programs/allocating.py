"""Ends while daemon threads allocate and free."""

import threading
import time

import dpctl
import dpctl.memory

queue = dpctl.SyclQueue()
running = threading.Barrier(5)


def allocate(kind, size):
    kind(size, queue=queue)
    running.wait()
    while True:
        kept = [kind(size + n, queue=queue) for n in range(20)]
        del kept


kinds = (dpctl.memory.MemoryUSMDevice, dpctl.memory.MemoryUSMShared, dpctl.memory.MemoryUSMHost)
for n, size in enumerate((100, 4096, 20_000, 300_000)):
    threading.Thread(target=allocate, args=(kinds[n % 3], size), daemon=True).start()
running.wait()
time.sleep(0.05)
print("last line", flush=True)
