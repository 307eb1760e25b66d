# Power iteration with @.
# expect: DPM301 at product
# expect: DPM301 at scale
# allow: DPM207
import dpnp

n = 500
matrix = dpnp.random.uniform(size=(n, n))
v = dpnp.ones(n)
for _ in range(60):
    v = matrix @ v  # @product
    v = v / dpnp.linalg.norm(v)  # @scale
print(float(v[0]))
