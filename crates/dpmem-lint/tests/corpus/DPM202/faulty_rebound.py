import dpnp


def tail(steps):
    history = dpnp.empty((1000, 500))
    for step in range(1000):
        history[step] = step
    history = history[-1]  #! DPM202 history[-1]
    return history


last = tail(1)
