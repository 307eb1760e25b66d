import dpnp

x = dpnp.zeros(100)
x[1:] = 2
y = dpnp.zeros(100)
y[::2] = 1
z = dpnp.zeros((10, 10))
for i in range(9):
    z[i] = i
w = dpnp.zeros((10, 10))
for i in range(10):
    w[i, 0] = i
