import dpnp


def check(knots, n):
    for d in range(n):
        t = dpnp.asarray(knots[d])
        if not dpnp.isfinite(t).shape:
            raise ValueError
    norms = {}
    for d in range(n):
        norms[d] = dpnp.sqrt(knots[d])
    return norms
