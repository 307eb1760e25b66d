import dpnp


def train(epochs, rounds, steps):
    x = dpnp.ones(100)
    for epoch in range(epochs):
        dpnp.multiply(x, 0.5, out=x)
        print(epoch, float(dpnp.sum(x)))
    for outer in range(rounds):
        for _ in range(steps):
            dpnp.multiply(x, 0.5, out=x)
        print(outer, float(dpnp.sum(x)))
