import dpnp

a = dpnp.ones(1000)
history = []
for _ in range(100):
    history.append(a.sum())
sizes = [dpnp.array(i) for i in range(10)]
