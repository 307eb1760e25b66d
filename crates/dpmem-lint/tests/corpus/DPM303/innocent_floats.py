import dpnp

a = dpnp.ones(1000)
history = dpnp.empty(3000)
for i in range(3000):
    history[i] = a.sum()
first = float(history[0])
