# Three queues on one device, one in-order and one with profiling; data passes between them by copies.
# waits: no
import dpctl
import dpnp

plain = dpctl.SyclQueue()
ordered = dpctl.SyclQueue(property="in_order")
timed = dpctl.SyclQueue(property="enable_profiling")
arrays = [dpnp.ones(4000 * (i + 1), sycl_queue=q) for i, q in enumerate((plain, ordered, timed))]
for _ in range(5):
    results = [a * 2 + 1 for a in arrays]
print([float(r.sum()) for r in results])
moved = dpnp.asarray(results[0], sycl_queue=timed)
try:
    results[0] + arrays[2]
except Exception as error:
    print(type(error).__name__)
print(float((moved + arrays[2][:4000]).sum()))
for _ in range(10):
    queue = dpctl.SyclQueue()
    dpnp.zeros(100, sycl_queue=queue) + 1
