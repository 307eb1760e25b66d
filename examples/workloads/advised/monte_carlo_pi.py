"""monte_carlo_pi.py, with squares in place, the comparison in one buffer and the hits counted on the device."""

import dpnp


def initialize():
    """Batches, and points per batch."""
    return 60, 250_000


def run(batches, count):
    """The estimate."""
    dpnp.random.seed(31)
    hits = dpnp.zeros((), dtype=dpnp.int64)
    inside = dpnp.empty(count, dtype=dpnp.bool)
    for _ in range(batches):
        x = dpnp.random.random(count)
        y = dpnp.random.random(count)
        x *= x
        y *= y
        x += y
        dpnp.less_equal(x, 1.0, out=inside)
        hits += dpnp.count_nonzero(inside)
    return 4.0 * int(hits) / (batches * count)


if __name__ == "__main__":
    print(f"pi is about {run(*initialize()):.6f}")
