# A few lines in a shell history: a handful of arrays, a plot's worth of numbers.
import dpnp as np

a = np.arange(12).reshape(3, 4)
b = np.ones((4, 2))
print(a @ b)
print((a * 2 + 1).T)
print(a.sum(), a.mean(), np.linalg.norm(b))
