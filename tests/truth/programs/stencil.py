# Heat flow on a plate by a five-point stencil: slices of two arrays that change places.
# waits: yes
import dpnp
from _settle import settle

now = dpnp.zeros((66, 66), dtype="f8")
settle(now)
now[0] = 100
settle(now)
then = now.copy()
settle(then)
for _ in range(6):
    inner = then[1:-1, 1:-1]
    dpnp.add(now[:-2, 1:-1], now[2:, 1:-1], out=inner)
    settle(inner)
    inner += now[1:-1, :-2]
    settle(inner)
    inner += now[1:-1, 2:]
    settle(inner)
    inner /= 4.0
    settle(inner)
    now, then = then, now
print(round(float(now[1:-1, 1:-1].max()), 3))
settle(now)
