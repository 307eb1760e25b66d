import dpnp

result = dpnp.empty(0)
for i in range(30):
    result = dpnp.concatenate([result, dpnp.ones(10)])  #! DPM304 dpnp.concatenate([result, dpnp.ones(10)])
