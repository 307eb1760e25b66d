# Every element of a device array is read on its own.
# expect: DPM403 at read
import dpnp

x = dpnp.linspace(0, 10, 400)
total = 0.0
for i in range(x.size):
    total += float(x[i])  # @read
print(total)
