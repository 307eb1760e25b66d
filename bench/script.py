"""A program as people write them: about 10,000 dpnp operations of mixed sizes, two to four seconds a pass.

It knows nothing of dpmem. Clustering, a heat equation, a linear solver, a signal, a table of measurements and a
stream of batches from NumPy: elementwise chains, reductions, sorting, indexing, copies and linear algebra, on
arrays of 100 to a million elements. Every pass does the same and gives the same numbers.

    python bench/script.py [PASSES]
"""

import sys

import dpnp
import numpy


def cluster(points, centres, rounds):
    """k-means: (n, d) points, (k, d) centres."""
    for _ in range(rounds):
        offsets = points[:, None, :] - centres[None, :, :]
        distances = (offsets * offsets).sum(axis=2)
        nearest = dpnp.argmin(distances, axis=1)
        for k in range(centres.shape[0]):
            members = points[nearest == k]
            if members.shape[0]:
                centres[k] = members.mean(axis=0)
    return centres


def diffuse(grid, steps, rate=0.2):
    """The heat equation on a square, explicit steps."""
    for _ in range(steps):
        inner = grid[1:-1, 1:-1]
        flow = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:] - 4 * inner
        grid[1:-1, 1:-1] = inner + rate * flow
    return grid


def solve(matrix, right, steps):
    """Conjugate gradients for a symmetric positive matrix."""
    x = dpnp.zeros_like(right)
    residual = right - matrix @ x
    direction = residual.copy()
    square = dpnp.dot(residual, residual)
    for _ in range(steps):
        image = matrix @ direction
        step = square / dpnp.dot(direction, image)
        x += step * direction
        residual -= step * image
        new_square = dpnp.dot(residual, residual)
        direction = residual + (new_square / square) * direction
        square = new_square
    return x


def clean(signal, rounds):
    """Smooth, clip and square up a signal, over and over."""
    for _ in range(rounds):
        smooth = (signal[:-2] + 2 * signal[1:-1] + signal[2:]) / 4
        centred = smooth - smooth.mean()
        bounded = dpnp.clip(centred / (centred.std() + 1e-9), -3, 3)
        signal = dpnp.concatenate((signal[:1], dpnp.tanh(bounded) + dpnp.abs(bounded) * 0.1, signal[-1:]))
    return signal


def describe(table):
    """Statistics of each column of a table, as Python floats."""
    described = []
    for column in range(table.shape[1]):
        values = dpnp.ascontiguousarray(table[:, column])
        ordered = dpnp.sort(values)
        order = dpnp.argsort(values)
        high = values[values > ordered[-values.shape[0] // 10]]
        described.append(
            (
                float(values.min()),
                float(values.max()),
                float(ordered[values.shape[0] // 2]),
                float(high.sum()),
                float(dpnp.take(values, order[:10]).mean()),
                float(dpnp.cumsum(values)[-1]),
                float(dpnp.where(values > 0, values, 0).mean()),
            )
        )
    return described


def learn(batches, weights, rate=0.05):
    """Logistic regression on batches that come from NumPy and go back to it."""
    predictions = []
    for features, labels in batches:
        x, y = dpnp.asarray(features), dpnp.asarray(labels)
        prediction = 1 / (1 + dpnp.exp(-(x @ weights)))
        gradient = x.T @ (prediction - y) / x.shape[0]
        weights = weights - rate * (gradient + 0.001 * weights)
        predictions.append(dpnp.asnumpy(prediction))
    return weights, numpy.concatenate(predictions)


def decompose(matrix):
    """A little dense linear algebra and one transform."""
    q, r = dpnp.linalg.qr(matrix)
    inverse = dpnp.linalg.inv(matrix)
    values = dpnp.linalg.eigvalsh(matrix)
    spectrum = dpnp.abs(dpnp.fft.fft(matrix[0]))
    return float(dpnp.abs(q @ r - matrix).max() + dpnp.trace(inverse) + values.sum() + spectrum.sum())


class Data:
    """What the program works on, made once in NumPy."""

    def __init__(self):
        random = numpy.random.default_rng(7)
        self.points = random.normal(size=(1000, 4)).astype(numpy.float32)
        self.centres = self.points[:8].copy()
        self.grid = random.random((200, 200))
        half = random.normal(size=(160, 160))
        self.matrix = half @ half.T + 160 * numpy.eye(160)
        self.right = random.normal(size=160)
        self.signals = [random.normal(size=size) for size in (100, 2000, 30_000)]
        self.long_signal = random.normal(size=1_000_000)
        self.table = random.normal(size=(5000, 24))
        features = random.normal(size=(160, 64, 32))
        self.batches = [(each, (each[:, 0] > 0).astype(float)) for each in features]


def work(data):
    """One pass over everything; the result is a checksum."""
    total = 0.0
    centres = cluster(dpnp.asarray(data.points), dpnp.asarray(data.centres), rounds=20)
    total += float(centres.sum())
    total += float(diffuse(dpnp.asarray(data.grid), steps=100).sum())
    for _ in range(2):
        total += float(solve(dpnp.asarray(data.matrix), dpnp.asarray(data.right), steps=60).sum())
    for signal in data.signals:
        total += float(clean(dpnp.asarray(signal), rounds=60).sum())
    total += float(clean(dpnp.asarray(data.long_signal), rounds=2).sum())
    total += sum(map(sum, describe(dpnp.asarray(data.table))))
    weights, predictions = learn(data.batches, dpnp.zeros(32))
    total += float(weights.sum()) + float(predictions.sum())
    for _ in range(10):
        total += decompose(dpnp.asarray(data.matrix))
    return total


def main():
    passes = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    data = Data()
    for _ in range(passes):
        print(f"checksum {work(data):.6e}")


if __name__ == "__main__":
    main()
