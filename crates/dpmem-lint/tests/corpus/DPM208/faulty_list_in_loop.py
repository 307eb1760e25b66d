import dpnp

results = []
x = dpnp.arange(100)
for i in range(50):
    results.append(dpnp.asnumpy(x * i))  #! DPM208 dpnp.asnumpy(x * i) #! DPM301 x * i
