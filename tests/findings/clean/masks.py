# Masks select and replace, a few times.
import dpnp

x = dpnp.random.normal(0, 1, size=(300, 300))
x[x < 0] = 0
large = x[x > 2]
clipped = dpnp.where(x > 1, 1.0, x)
print(large.size, float(clipped.max()), int((x == 0).sum()))
