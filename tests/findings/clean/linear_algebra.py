# Solves and decomposes once each.
import dpnp

n = 200
a = dpnp.random.uniform(size=(n, n)) + n * dpnp.eye(n)
b = dpnp.ones((n, 3))
x = dpnp.linalg.solve(a, b)
q, r = dpnp.linalg.qr(a)
values = dpnp.linalg.eigvalsh(a + a.T)
print(float(dpnp.linalg.norm(a @ x - b)) < 1e-8, float(dpnp.abs(q @ r - a).max()) < 1e-9, float(values[-1]) > 0)
