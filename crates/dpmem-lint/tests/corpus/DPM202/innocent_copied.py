import dpnp


def first_row():
    cube = dpnp.ones((16, 512, 512))
    return cube[0, 0, :10].copy()


def number():
    cube = dpnp.ones((16, 512, 512))
    return float(cube[0, 0, 0]), cube[0].sum(), dpnp.array(cube[0, 0])
