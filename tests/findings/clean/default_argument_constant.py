# A default argument that is one constant array.
import dpnp


def weigh(x, out, weights=dpnp.linspace(0, 1, 10_000)):
    return dpnp.multiply(x, weights, out=out)


x, y = dpnp.ones(10_000), dpnp.empty(10_000)
for _ in range(40):
    weigh(x, y)
print(float(y.max()))
