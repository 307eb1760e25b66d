"""Distances between all pairs of points in space, and from them the mean distance and the closest pair."""

import dpnp


def initialize(count=1_500):
    """Points in the unit cube."""
    dpnp.random.seed(11)
    return (dpnp.random.random((count, 3)),)


def pairwise_distance(points):
    """The matrix of Euclidean distances."""
    difference = points[:, None, :] - points[None, :, :]
    return dpnp.sqrt((difference**2).sum(axis=-1))


def run(points):
    """The mean over all pairs, and the smallest distance between two points."""
    count = points.shape[0]
    distance = pairwise_distance(points)
    mean = distance.sum() / (count * (count - 1))
    closest = (distance + dpnp.eye(count) * 10.0).min()
    return float(mean), float(closest)


if __name__ == "__main__":
    mean, closest = run(*initialize())
    print(f"mean distance {mean:.6f}, closest pair {closest:.6f}")
