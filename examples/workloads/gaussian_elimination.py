"""Solves a dense system of linear equations by Gaussian elimination with partial pivoting."""

import dpnp


def initialize(size=200):
    """A matrix and a right-hand side whose solution is all ones."""
    dpnp.random.seed(23)
    matrix = dpnp.random.uniform(-1.0, 1.0, (size, size))
    return matrix, matrix.sum(axis=1)


def solve(matrix, rhs):
    """The solution of `matrix @ x == rhs`."""
    size = matrix.shape[0]
    a = dpnp.hstack((matrix, rhs[:, None]))
    for k in range(size):
        pivot = k + int(dpnp.argmax(dpnp.abs(a[k:, k])))
        if pivot != k:
            row = a[k].copy()
            a[k] = a[pivot]
            a[pivot] = row
        factor = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] -= factor[:, None] * a[k, k:]
    x = dpnp.zeros(size)
    for k in range(size - 1, -1, -1):
        x[k] = (a[k, size] - dpnp.dot(a[k, k + 1 : size], x[k + 1 :])) / a[k, k]
    return x


def run(matrix, rhs):
    """The sum of the solution, and the largest residual."""
    x = solve(matrix, rhs)
    residual = dpnp.abs(matrix @ x - rhs).max()
    return float(x.sum()), float(residual)


if __name__ == "__main__":
    total, residual = run(*initialize())
    print(f"sum of the solution {total:.6f}, residual below 1e-8: {residual < 1e-8}")
