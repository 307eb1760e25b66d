# Reductions with a wait after each: sums, extrema and dot products down to 0-d arrays.
# waits: yes
import dpnp
from _settle import settle

x = dpnp.reshape(dpnp.arange(20_000, dtype="f4"), (200, 100))
settle(x)
found = []
for axis in (None, 0, 1):
    for reduce in (dpnp.sum, dpnp.min, dpnp.max, dpnp.argmax):
        result = reduce(x, axis=axis)
        settle(result)
        found.append(result)
print([r.shape for r in found])
row = x[7]
print(float(dpnp.dot(row, row)))
settle(row)
found.clear()
