import dpnp

x = dpnp.ones(100)
for _ in range(100):
    x *= 0.9
print(float(dpnp.sum(x)), int(x.shape[0]), x)
assert bool(x.max() < 1)
