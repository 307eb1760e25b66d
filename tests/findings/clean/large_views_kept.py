# What is kept are views, but they cover their blocks.
import dpnp

volume = dpnp.arange(1_200_000, dtype=dpnp.float64).reshape(100, 120, 100)
transposed = volume.T
flat = dpnp.ones((500, 500)).ravel()
inner = dpnp.zeros((1_002, 1_002), dtype=dpnp.float32)[1:-1, 1:-1]
del volume
print(transposed.shape, flat.size, float(inner.sum()))
