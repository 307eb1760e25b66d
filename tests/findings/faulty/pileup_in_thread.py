# A background thread evaluates and drops candidates.
# expect: DPM207 at candidate
# allow: DPM301 at candidate
# allow: DPM302 at candidate
import threading

import dpnp

weights = dpnp.ones((1_600, 800), dtype=dpnp.float32)
dpnp.ones((4, 4)) @ dpnp.ones((4, 4))


class Search(threading.Thread):
    def run(self):
        for _ in range(24):
            candidate = weights @ weights.T  # @candidate
            self.shape = candidate.shape


search = Search()
search.start()
search.join()
weights.sycl_queue.wait()
print(search.shape)
