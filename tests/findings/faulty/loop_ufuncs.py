# An activation function called for every batch: a new array in each of its lines.
# expect: DPM301 at negative
# expect: DPM301 at sigmoid
# allow: DPM207
# allow: DPM302
import dpnp


def sigmoid(x):
    e = dpnp.exp(-x)  # @negative
    return 1 / (1 + e)  # @sigmoid


batch = dpnp.random.normal(0, 1, size=(256, 256)).astype(dpnp.float32)
total = dpnp.zeros((256, 256), dtype=dpnp.float32)
for _ in range(40):
    total += sigmoid(batch)
print(float(total.mean()))
