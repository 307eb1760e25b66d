import dpnp

STATE = {}


def prepare(n):
    STATE["table"] = dpnp.arange(n)
    STATE["scale"] = dpnp.ones(n)
    STATE[0] = dpnp.zeros(n)


def scale(x, factor=2.0, eye=None, tiny=dpnp.array([1.0, 2.0])):
    return x * factor
