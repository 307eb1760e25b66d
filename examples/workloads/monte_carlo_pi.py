"""Estimates pi from the share of random points of the unit square that lie in the quarter circle."""

import dpnp


def initialize():
    """Batches, and points per batch."""
    return 60, 250_000


def run(batches, count):
    """The estimate."""
    dpnp.random.seed(31)
    hits = 0
    for _ in range(batches):
        x = dpnp.random.random(count)
        y = dpnp.random.random(count)
        hits += int(dpnp.count_nonzero(x * x + y * y <= 1.0))
    return 4.0 * hits / (batches * count)


if __name__ == "__main__":
    print(f"pi is about {run(*initialize()):.6f}")
