# Products nobody waits for: the queue is far behind the loop.
# expect: DPM207 at product
# allow: DPM301 at product
# allow: DPM302 at product
import dpnp

x = dpnp.ones((2_048, 512), dtype=dpnp.float32)
for _ in range(16):
    x @ x.T  # @product
x.sycl_queue.wait()
