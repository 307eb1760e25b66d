"""Normalizes batches of vectors to length one and adds up the lengths that they had."""

import dpnp
import numpy


def initialize(batches=40, count=40_000, dimension=16):
    """Batches of vectors on the host, as a loader would hand them over."""
    generator = numpy.random.default_rng(29)
    return ([generator.standard_normal((count, dimension)) for _ in range(batches)],)


def l2_norm(vectors):
    """The length of each vector."""
    return dpnp.sqrt(dpnp.sum(dpnp.square(vectors), axis=1))


def run(batches):
    """The sum of all lengths, and of the coordinates of all normalized vectors."""
    total = 0.0
    coordinates = 0.0
    for batch in batches:
        vectors = dpnp.asarray(batch)
        length = l2_norm(vectors)
        vectors = vectors / length[:, None]
        total += float(length.sum())
        coordinates += float(vectors.sum())
    return total, coordinates


if __name__ == "__main__":
    total, coordinates = run(*initialize())
    print(f"sum of lengths {total:.3f}, of normalized coordinates {coordinates:.3f}")
