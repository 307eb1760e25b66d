# Four threads compute on one queue; each keeps its last result. Functions are warmed up first.
# waits: no
import threading

import dpnp


def work(n, out):
    for _ in range(25):
        x = dpnp.arange(n, dtype="f4")
        y = x * 2 + 1
        out.append(float(y.sum()))
    kept.append(y)


kept = []
work(100, [])
results = [[] for _ in range(4)]
threads = [threading.Thread(target=work, args=(500 * (i + 1), r)) for i, r in enumerate(results)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([r[-1] for r in results], len(kept))
