"""Groups points of the plane into clusters by Lloyd's algorithm until the centres stand still."""

import dpnp


def initialize(count=40_000, clusters=8):
    """Points around `clusters` places on a circle, and the first centres, which are some of the points."""
    dpnp.random.seed(3)
    angle = dpnp.arange(count) % clusters * (6.283185307 / clusters)
    points = dpnp.stack([dpnp.cos(angle), dpnp.sin(angle)], axis=1) * 5.0
    points = points + dpnp.random.normal(0.0, 1.2, (count, 2))
    return points, points[:clusters].copy()


def assign(points, centres):
    """For each point the index of the nearest centre."""
    difference = points[:, None, :] - centres[None, :, :]
    return dpnp.argmin((difference**2).sum(axis=2), axis=1)


def run(points, centres, steps=40):
    """The sum of squared distances to the nearest centre, after at most `steps` steps."""
    for _ in range(steps):
        labels = assign(points, centres)
        new = dpnp.empty_like(centres)
        for k in range(centres.shape[0]):
            new[k] = points[labels == k].mean(axis=0)
        shift = dpnp.abs(new - centres).max()
        centres = new
        if shift < 1e-6:
            break
    labels = assign(points, centres)
    return float(((points - centres[labels]) ** 2).sum())


if __name__ == "__main__":
    print(f"inertia {run(*initialize()):.3f}")
