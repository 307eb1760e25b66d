import dpnp

a = dpnp.ones(1000)
history = []
for _ in range(3000):
    history.append(a.sum())  #! DPM303 a.sum()
