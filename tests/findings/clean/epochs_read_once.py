# Gradient descent; one loss per epoch is read and kept as a float.
import dpnp

samples, features = 2_000, 16
x = dpnp.random.normal(0, 1, size=(samples, features))
y = x @ dpnp.arange(features, dtype=x.dtype)
w = dpnp.zeros(features)
error = dpnp.empty(samples)
gradient = dpnp.empty(features)
losses = []
for _epoch in range(30):
    for _ in range(10):
        dpnp.matmul(x, w, out=error)
        dpnp.subtract(error, y, out=error)
        dpnp.matmul(x.T, error, out=gradient)
        dpnp.multiply(gradient, 0.1 / samples, out=gradient)
        dpnp.subtract(w, gradient, out=w)
    losses.append(float(dpnp.dot(error, error)) / samples)
assert losses[-1] < losses[0]
