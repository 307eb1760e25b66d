import dpnp


def train(epochs, batches):
    a = dpnp.ones(1000)
    history = []
    for epoch in range(epochs):
        history.append(a.sum())
    return history
