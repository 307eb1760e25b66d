import dpnp


def head(values: dpnp.ndarray, n):
    return values[:n]


def pick(values=None):
    if values is None:
        values = dpnp.ones((1000, 1000))
    return values[0]


def masked():
    values = dpnp.ones(1_000_000)
    return values[values > 1]
