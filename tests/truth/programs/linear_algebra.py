# Products and decompositions through oneMKL: matmul, einsum, solve, inverse, SVD, QR, Cholesky, eigenvalues.
# waits: no
import dpnp

n = 48
i = dpnp.arange(n, dtype="f8")
a = dpnp.exp(-0.1 * (i[:, None] - i[None, :]) ** 2) + n * dpnp.eye(n)
b = a @ dpnp.ones(n)
x = dpnp.linalg.solve(a, b)
print(round(float(dpnp.abs(x - 1).max()), 6))
u, s, vh = dpnp.linalg.svd(a)
print(round(float(dpnp.abs((u * s) @ vh - a).max()), 6))
q, r = dpnp.linalg.qr(a)
print(round(float(dpnp.abs(q @ r - a).max()), 6))
lower = dpnp.linalg.cholesky(a)
print(round(float(dpnp.abs(lower @ lower.T - a).max()), 6))
w = dpnp.linalg.eigvalsh(a)
print(round(float(w.sum() - dpnp.trace(a)), 6))
inverse = dpnp.linalg.inv(a)
print(round(float(dpnp.abs(inverse @ a - dpnp.eye(n)).max()), 6), round(float(dpnp.linalg.norm(a)), 4))
print(dpnp.outer(i, i).shape, dpnp.einsum("ij,j->i", a, b).shape, dpnp.kron(dpnp.eye(2), dpnp.eye(3)).shape)
