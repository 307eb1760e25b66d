# Two buffers change places on every step.
import dpnp

n = 400
front = dpnp.zeros((n, n), dtype=dpnp.float32)
back = dpnp.zeros((n, n), dtype=dpnp.float32)
front[0, :] = 1
back[0, :] = 1
for _ in range(60):
    inner = back[1:-1, 1:-1]
    dpnp.add(front[:-2, 1:-1], front[2:, 1:-1], out=inner)
    dpnp.add(inner, front[1:-1, :-2], out=inner)
    dpnp.add(inner, front[1:-1, 2:], out=inner)
    dpnp.multiply(inner, 0.25, out=inner)
    front, back = back, front
print(dpnp.asnumpy(front)[n // 2, :5])
