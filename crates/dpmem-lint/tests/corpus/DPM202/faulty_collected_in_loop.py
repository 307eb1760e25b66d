import dpnp

kept = []
for seed in range(30):
    block = dpnp.arange(100_000) * seed
    kept.append(block[:3])  #! DPM202 block[:3]
