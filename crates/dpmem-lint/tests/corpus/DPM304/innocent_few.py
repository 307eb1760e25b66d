import dpnp

x = dpnp.ones((2, 2))
for axis in range(2):
    x = dpnp.concatenate([x, x], axis=axis)
x = dpnp.concatenate([x, x])
