# Row operations in place on views of one matrix.
import dpnp

n = 60
a = dpnp.random.uniform(size=(n, n)) + n * dpnp.eye(n)
outer = dpnp.empty((n, n))
for k in range(n - 1):
    scaled = outer[k + 1 :, k:]
    a[k + 1 :, k] /= a[k, k]
    dpnp.multiply(a[k + 1 :, k : k + 1], a[k : k + 1, k:], out=scaled)
    a[k + 1 :, k + 1 :] -= scaled[:, 1:]
print(float(dpnp.prod(dpnp.diag(a)[:5])))
