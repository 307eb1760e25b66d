# A history of NumPy arrays: on the host, yes, but in USM-host memory.
# expect: DPM208 at fetch
# allow: DPM201 at fetch
# allow: DPM205 at fetch
import dpnp


class Log:
    def __init__(self):
        self.rows = []

    def write(self, x):
        self.rows.append(dpnp.asnumpy(x))  # @fetch


log = Log()
x = dpnp.ones((400, 400), dtype=dpnp.float64)
for _ in range(30):
    x *= 1.01
    log.write(x)
print(len(log.rows), log.rows[-1].mean())
