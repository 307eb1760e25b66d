import dpnp

a = dpnp.ones(1000)
b = dpnp.ones(1000)
c = dpnp.empty(1000)
for _ in range(100):
    dpnp.add(a, b, out=c)
    c *= 2
    c += b
