import dpnp

x = dpnp.zeros(100)
x[:] = x + 1
y = dpnp.ones(100)
print(y.sum())
y[:] = 3
z = dpnp.zeros(100)
dpnp.add(z, 1, out=z)
v = dpnp.ones(100)
v += 1
