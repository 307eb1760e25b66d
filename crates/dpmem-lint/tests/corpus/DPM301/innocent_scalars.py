import dpnp

x = dpnp.ones(1000)
total = 0
for i in range(100):
    s = dpnp.sum(x)
    t = s * 2 + 1
    u = dpnp.dot(x, x) / 3
    total = total + i
