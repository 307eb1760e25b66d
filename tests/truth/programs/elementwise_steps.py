# Element-wise operations, one at a time: results, scalars as operands, and temporaries that die at once.
# waits: yes
import dpnp
from _settle import settle

x = dpnp.arange(1000, dtype="f4")
settle(x)
total = 0.0
for i in range(12):
    y = x + x
    settle(y)
    z = y * y
    settle(z)
    w = dpnp.sqrt(z)
    settle(w)
    del y, z
    if i % 3 == 0:
        v = w * 2
        settle(v)
        total += float(v[-1])
        settle(v)
    del w
flags = dpnp.greater(x, x)
settle(flags)
print(total, flags.shape, dpnp.negative(x).dtype)
settle(x)
