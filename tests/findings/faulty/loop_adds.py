# A sum with a new array for each step, at module level.
# expect: DPM301 at step
# allow: DPM207 at step
import dpnp

a = dpnp.arange(50_000, dtype=dpnp.float64)
b = dpnp.ones(50_000)
for _ in range(200):
    a = dpnp.add(a, b)  # @step
print(float(a[0]))
