import dpnp


def run(steps):
    x = dpnp.ones(100)
    history = []
    for step in range(steps):
        dpnp.multiply(x, 0.9, out=x)
        history.append(float(dpnp.sum(x)))  #! DPM403 float(dpnp.sum(x))
    return history
