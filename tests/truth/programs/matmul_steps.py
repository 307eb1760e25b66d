# A power iteration with out= and with fresh results, waiting after each product.
# waits: yes
import dpnp
from _settle import settle

n = 64
a = dpnp.eye(n, dtype="f8")
settle(a)
a[0] = 2
settle(a)
v = dpnp.ones((n, 1), dtype="f8")
settle(v)
for _ in range(5):
    w = a @ v
    settle(w)
    v = w
    del w
square = dpnp.empty((n, n), dtype="f8")
settle(square)
dpnp.matmul(a, a, out=square)
settle(square)
print(float(v[0, 0]), float(square[0, 0]))
settle(v)
