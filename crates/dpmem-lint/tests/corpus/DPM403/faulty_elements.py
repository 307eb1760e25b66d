import dpnp as np

x = np.arange(1000)
total = 0
for i in range(1000):
    total += int(x[i])  #! DPM403 int(x[i])
