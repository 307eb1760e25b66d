import dpnp

latest = {}
x = dpnp.arange(100)
for i in range(50):
    dpnp.multiply(x, 2, out=x)
    latest["x"] = x.asnumpy()
