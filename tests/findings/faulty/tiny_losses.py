# The loss of every step is kept as a 0-d array.
# expect: DPM303 at loss
# allow: DPM201 at loss
# allow: DPM205 at loss
import dpnp


def train(steps):
    w = dpnp.ones(256, dtype=dpnp.float32)
    losses = []
    for _ in range(steps):
        w *= 0.999
        losses.append(w.sum())  # @loss
    return losses


losses = train(2_500)
print(len(losses), float(losses[-1]))
