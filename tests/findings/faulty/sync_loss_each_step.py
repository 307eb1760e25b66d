# The loss is turned into a float after every single step.
# expect: DPM403 at loss
import dpnp

x = dpnp.random.uniform(size=(500, 20))
w = dpnp.zeros(20)
y = x @ dpnp.ones(20)
error, gradient = dpnp.empty(500), dpnp.empty(20)
losses = []
for _ in range(150):
    dpnp.matmul(x, w, out=error)
    dpnp.subtract(error, y, out=error)
    dpnp.matmul(x.T, error, out=gradient)
    dpnp.multiply(gradient, 0.0005, out=gradient)
    dpnp.subtract(w, gradient, out=w)
    losses.append(float(dpnp.dot(error, error)))  # @loss
print(losses[0], losses[-1])
