# Integer-array indexing, take and put, and boolean masks, for reading and for writing.
# waits: no
import dpnp

x = dpnp.reshape(dpnp.arange(5000, dtype="f8"), (100, 50))
rows = dpnp.asarray([0, 5, 99, 5])
picked = x[rows]
pairs = x[rows, dpnp.asarray([1, 2, 3, 4])]
print(picked.shape, [float(v) for v in pairs])
mask = x % 3 == 0
chosen = x[mask]
print(chosen.shape, float(chosen.sum()))
x[mask] = -1
x[rows] = 0
x[x < 0] += 10
print(float(x.sum()), float(dpnp.take(x, rows, axis=0).sum()))
where = dpnp.nonzero(mask)
print(len(where), where[0].shape, dpnp.where(mask, x, 0).shape)
dpnp.put(x, rows, 5)
print(dpnp.extract(mask, x).shape, dpnp.argwhere(mask).shape)
