import dpnp

parts = []
for i in range(30):
    parts.append(dpnp.ones(10) * i)
result = dpnp.concatenate(parts)
