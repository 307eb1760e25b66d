# Array methods in a while loop.
# expect: DPM301 at clip
# allow: DPM207 at clip
import dpnp

x = dpnp.random.normal(0, 4, size=100_000)
low = -4.0
while low < -1.0:
    x = x.clip(low, -low)  # @clip
    low += 0.05
print(float(x.max()))
