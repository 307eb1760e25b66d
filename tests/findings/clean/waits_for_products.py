# Large products, one after the other into the same block, with a wait after each.
import dpnp

x = dpnp.ones((1_024, 512), dtype=dpnp.float32)
gram = dpnp.empty((1_024, 1_024), dtype=dpnp.float32)
for _ in range(6):
    dpnp.matmul(x, x.T, out=gram)
    gram.sycl_queue.wait()
print(float(gram[0, 0]))
