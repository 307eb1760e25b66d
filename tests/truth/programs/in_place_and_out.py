# In-place operators and out= reuse memory; the same sums with fresh results do not.
# waits: yes
import dpnp
from _settle import settle

a = dpnp.ones(30_000, dtype="f8")
b = dpnp.full(30_000, 2.0)
c = dpnp.empty_like(a)
settle(a, b, c)
for _ in range(4):
    dpnp.add(a, b, out=c)
    settle(c)
    dpnp.multiply(c, b, out=c)
    settle(c)
    a += c
    settle(a)
    a -= b
    settle(a)
    dpnp.sqrt(a, out=a)
    settle(a)
fresh = a + b
settle(fresh)
part = c[:100]
part *= 0
settle(part)
print(round(float(a[0]), 6), float(c[50]), fresh.shape)
settle(a, c)
