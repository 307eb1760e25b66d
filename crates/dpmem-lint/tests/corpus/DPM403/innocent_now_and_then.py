import dpnp

x = dpnp.ones(100)
for step in range(1000):
    x *= 0.9
    if step % 100 == 0:
        print(step, float(dpnp.sum(x)))
    n = int(x.size) + len(x)
    if x.ndim == 1 and step > 3:
        continue
