import dpnp as np


def train(steps):
    w = np.ones(100)
    losses = []
    for step in range(steps):
        loss = np.mean(w * w)  #! DPM301 w * w
        losses.append(loss)  #! DPM303 loss
    return losses


losses = train(4)
