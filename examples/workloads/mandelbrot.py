"""Counts for each point of the complex plane the steps until z*z + c escapes, and from that the set's area."""

import dpnp


def initialize(width=450, height=300):
    """The grid of points c."""
    x = dpnp.linspace(-2.25, 0.75, width)
    y = dpnp.linspace(-1.25, 1.25, height)
    return (x[None, :] + 1j * y[:, None],)


def run(c, steps=40):
    """The area of what has not escaped after `steps` steps, and the mean number of steps."""
    z = dpnp.zeros_like(c)
    escaped_after = dpnp.zeros(c.shape, dtype=dpnp.int32)
    for _ in range(steps):
        inside = dpnp.abs(z) < 2.0
        escaped_after += inside
        z = dpnp.where(inside, z * z + c, z)
    inside = dpnp.abs(z) < 2.0
    area = 3.0 * 2.5 * float(inside.mean())
    return area, float(escaped_after.mean())


if __name__ == "__main__":
    area, mean = run(*initialize())
    print(f"area {area:.6f}, mean steps {mean:.6f}")
