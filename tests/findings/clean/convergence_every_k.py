# Jacobi iteration; the error is looked at once in 25 steps.
import dpnp

n = 256
a = dpnp.random.uniform(0, 1, size=(n, n))
a += n * dpnp.eye(n)
b = dpnp.ones(n)
diagonal = dpnp.diag(a).copy()
x = dpnp.zeros(n)
product = dpnp.empty(n)
for step in range(1, 401):
    dpnp.matmul(a, x, out=product)
    dpnp.subtract(b, product, out=product)
    if step % 25 == 0 and float(dpnp.max(dpnp.abs(product))) < 1e-10:
        break
    dpnp.divide(product, diagonal, out=product)
    dpnp.add(x, product, out=x)
print(step)
