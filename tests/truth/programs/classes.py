# A small neural network in classes: attributes, a property, methods of layers, weights replaced each step.
# waits: no
import itertools

import dpnp


class Layer:
    def __init__(self, inputs, outputs):
        self.weights = dpnp.full((inputs, outputs), 0.01, dtype="f4")
        self.bias = dpnp.zeros(outputs, dtype="f4")

    def forward(self, x):
        self.seen = x
        return dpnp.maximum(x @ self.weights + self.bias, 0)

    def backward(self, gradient, rate):
        back = gradient @ self.weights.T
        self.weights = self.weights - rate * (self.seen.T @ gradient)
        self.bias = self.bias - rate * gradient.sum(axis=0)
        return back


class Network:
    def __init__(self, *sizes):
        self.layers = [Layer(a, b) for a, b in itertools.pairwise(sizes)]

    @property
    def parameter_bytes(self):
        return sum(layer.weights.nbytes + layer.bias.nbytes for layer in self.layers)

    def train(self, x, target, rate=1e-3):
        for layer in self.layers:
            x = layer.forward(x)
        error = x - target
        for layer in reversed(self.layers):
            error = layer.backward(error, rate)


network = Network(20, 64, 32, 1)
batch, wanted = dpnp.ones((50, 20), dtype="f4"), dpnp.full((50, 1), 0.5, dtype="f4")
for _ in range(6):
    network.train(batch, wanted)
print(network.parameter_bytes, [layer.weights.shape for layer in network.layers])
