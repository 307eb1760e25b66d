import dpnp

x = dpnp.ones(1000)
for i in range(100):
    if i % 50 == 0:
        y = x * 2
        print(y.shape)
    z = x.shape[0] + i
