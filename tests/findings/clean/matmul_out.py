# A Markov chain: the product goes to the spare vector.
import dpnp


def stationary(size=300, steps=40):
    p = dpnp.random.uniform(0.1, 1.0, size=(size, size))
    p /= p.sum(axis=0)
    v = dpnp.full(size, 1 / size)
    w = dpnp.empty(size)
    for _ in range(steps):
        dpnp.matmul(p, v, out=w)
        v, w = w, v
    return v


print(float(stationary().max()))
