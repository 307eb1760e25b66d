import dpnp

x = dpnp.ones(1000)
y = dpnp.ones(1000)
total = dpnp.zeros(())
for _ in range(50):
    total += dpnp.sum(dpnp.multiply(x, y))  #! DPM301 dpnp.multiply(x, y)
