"""pairwise_distance.py, with its temporaries written over what is no longer needed."""

import dpnp


def initialize(count=1_500):
    """Points in the unit cube."""
    dpnp.random.seed(11)
    return (dpnp.random.random((count, 3)),)


def pairwise_distance(points):
    """The matrix of Euclidean distances."""
    difference = points[:, None, :] - points[None, :, :]
    dpnp.power(difference, 2, out=difference)
    distance = difference.sum(axis=-1)
    return dpnp.sqrt(distance, out=distance)


def run(points):
    """The mean over all pairs, and the smallest distance between two points."""
    count = points.shape[0]
    distance = pairwise_distance(points)
    mean = distance.sum() / (count * (count - 1))
    dpnp.fill_diagonal(distance, 10.0)
    return float(mean), float(distance.min())


if __name__ == "__main__":
    mean, closest = run(*initialize())
    print(f"mean distance {mean:.6f}, closest pair {closest:.6f}")
