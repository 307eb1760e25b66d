# A closure owns its weights for as long as the program needs it.
import dpnp


def make_model(size):
    weights = dpnp.random.uniform(size=(size, size))
    out = dpnp.empty(size)

    def predict(x):
        return dpnp.matmul(weights, x, out=out)

    return predict


model = make_model(200)
x = dpnp.ones(200)
for _ in range(30):
    y = model(x)
print(float(y.sum()))
