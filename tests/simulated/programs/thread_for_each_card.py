# A thread for each device computes there; results are freed by the main thread.
# waits: no
import threading

import dpctl
import dpnp

devices = dpctl.get_devices()
results = {}
for device in devices:  # what dpnp makes at a first use is made by one thread
    x = dpnp.ones(8, dtype="f4", device=device) * 2
    (x + x).sum()


def work(device, place):
    kept = [dpnp.ones(2000 + place, dtype="f4", device=device) * number for number in range(8)]
    for _ in range(20):
        kept[0] = kept[0] + kept[-1]
    results[place] = kept


threads = [threading.Thread(target=work, args=(device, place)) for place, device in enumerate(devices)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for place, kept in sorted(results.items()):
    print(place, float(kept[0].sum()))
del results[0]
