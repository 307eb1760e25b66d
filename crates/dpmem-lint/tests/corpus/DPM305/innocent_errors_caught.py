import dpnp


def read(load):
    try:
        x = dpnp.zeros(10)
        x[:] = load()
    except OSError:
        pass
    return x
