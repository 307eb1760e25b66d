# All the memory of a small network is asked for before training starts.
import dpnp


class Layer:
    def __init__(self, inputs, outputs, batch):
        self.weights = dpnp.random.normal(0, 0.1, size=(inputs, outputs))
        self.product = dpnp.empty((batch, outputs))
        self.output = dpnp.empty((batch, outputs))

    def forward(self, x):
        dpnp.matmul(x, self.weights, out=self.product)
        dpnp.maximum(self.product, 0, out=self.output)
        return self.output


sizes = [64] * 25
layers = [Layer(a, b, 128) for a, b in zip(sizes, sizes[1:])]
batch = dpnp.random.uniform(size=(128, 64))
for _ in range(20):
    activation = batch
    for layer in layers:
        activation = layer.forward(activation)
print(activation.shape, float(activation.sum()))
