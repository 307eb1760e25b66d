# Reductions over all and over one axis, accumulations, and those that make temporaries of their own.
# waits: no
import dpnp

x = dpnp.reshape(dpnp.arange(60_000, dtype="f8"), (300, 200))
print(float(x.sum()), float(x.min()), float(x.max()), float(x.mean()))
print(round(float(x.std()), 3), round(float(dpnp.var(x, axis=0)[3]), 3))
rows = x.sum(axis=1)
columns = x.mean(axis=0)
print(float(rows[10]), float(columns[10]), int(dpnp.argmax(x)), int(dpnp.argmin(rows)))
print(bool(dpnp.all(x >= 0)), bool(dpnp.any(x < 0)), float(dpnp.cumsum(rows)[-1]))
print(float(dpnp.prod(dpnp.full(10, 2.0))), int(dpnp.count_nonzero(x)), float(dpnp.median(columns)))
for axis in (0, 1):
    print(dpnp.max(x, axis=axis).shape, dpnp.sum(x, axis=axis, keepdims=True).shape)
