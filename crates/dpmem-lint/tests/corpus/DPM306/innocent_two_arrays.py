import dpnp


def combine(x: dpnp.ndarray, y: dpnp.ndarray):
    a = dpnp.ones(100, dtype=dpnp.float32)
    b = dpnp.ones(100, dtype=dpnp.float64)
    return a + b, x * y, x * dpnp.array(2.0)
