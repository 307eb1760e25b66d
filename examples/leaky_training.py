"""A small training loop with two faults that cost device memory: a leak, and an array made anew on every step."""

import dpnp

history = []


def predict(x, weights):
    """One layer."""
    return dpnp.tanh(x * weights)


def train(steps):
    """Run `steps` of gradient descent; the loss of every step is kept, and with it the whole prediction."""
    x = dpnp.linspace(0.0, 1.0, 250_000, dtype=dpnp.float32)
    target = x * x
    weights = dpnp.ones(250_000, dtype=dpnp.float32)
    for step in range(steps):
        prediction = predict(x, weights)
        error = prediction - target
        weights -= 0.1 * error * x
        if step % 10 == 0:
            # The leak: what is logged is the array and not the number.
            history.append(prediction)
    return float(dpnp.mean(error * error))


print(f"mean squared error after training: {train(200):.6f}")
