"""kmeans.py, with the large arrays of a step made once."""

import dpnp


def initialize(count=40_000, clusters=8):
    """Points around `clusters` places on a circle, and the first centres, which are some of the points."""
    dpnp.random.seed(3)
    angle = dpnp.arange(count) % clusters * (6.283185307 / clusters)
    points = dpnp.stack([dpnp.cos(angle), dpnp.sin(angle)], axis=1) * 5.0
    points = points + dpnp.random.normal(0.0, 1.2, (count, 2))
    return points, points[:clusters].copy()


def assign(points, centres, difference, distance):
    """For each point the index of the nearest centre; the last two arrays are room to work in."""
    dpnp.subtract(points[:, None, :], centres[None, :, :], out=difference)
    dpnp.power(difference, 2, out=difference)
    dpnp.sum(difference, axis=2, out=distance)
    return dpnp.argmin(distance, axis=1)


def run(points, centres, steps=40):
    """The sum of squared distances to the nearest centre, after at most `steps` steps."""
    difference = dpnp.empty((points.shape[0], centres.shape[0], points.shape[1]))
    distance = dpnp.empty((points.shape[0], centres.shape[0]))
    belongs = dpnp.empty(points.shape[0], dtype=dpnp.bool)
    for _ in range(steps):
        labels = assign(points, centres, difference, distance)
        new = dpnp.empty_like(centres)
        for k in range(centres.shape[0]):
            dpnp.equal(labels, k, out=belongs)
            new[k] = points[belongs].mean(axis=0)
        shift = dpnp.abs(new - centres).max()
        centres = new
        if shift < 1e-6:
            break
    labels = assign(points, centres, difference, distance)
    return float(((points - centres[labels]) ** 2).sum())


if __name__ == "__main__":
    print(f"inertia {run(*initialize()):.3f}")
