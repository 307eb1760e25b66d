"""l2_norm.py, with the arrays of a batch made once."""

import dpnp
import numpy


def initialize(batches=40, count=40_000, dimension=16):
    """Batches of vectors on the host, as a loader would hand them over."""
    generator = numpy.random.default_rng(29)
    return ([generator.standard_normal((count, dimension)) for _ in range(batches)],)


def run(batches):
    """The sum of all lengths, and of the coordinates of all normalized vectors."""
    total = 0.0
    coordinates = 0.0
    square = dpnp.empty(batches[0].shape)
    length = dpnp.empty(batches[0].shape[0])
    for batch in batches:
        vectors = dpnp.asarray(batch)
        dpnp.square(vectors, out=square)
        dpnp.sum(square, axis=1, out=length)
        dpnp.sqrt(length, out=length)
        dpnp.divide(vectors, length[:, None], out=vectors)
        total += float(length.sum())
        coordinates += float(vectors.sum())
    return total, coordinates


if __name__ == "__main__":
    total, coordinates = run(*initialize())
    print(f"sum of lengths {total:.3f}, of normalized coordinates {coordinates:.3f}")
