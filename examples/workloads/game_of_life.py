"""Conway's game of life on a torus, and how many cells live at the end."""

import dpnp


def initialize(size=400):
    """A field of which a third is alive."""
    dpnp.random.seed(5)
    return ((dpnp.random.random((size, size)) < 0.33).astype(dpnp.int32),)


def neighbours(field):
    """For each cell how many of its eight neighbours live."""
    count = dpnp.zeros_like(field)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            if down or right:
                count = count + dpnp.roll(field, (down, right), axis=(0, 1))
    return count


def run(field, generations=60):
    """Living cells after `generations`, and the most that lived at once."""
    most = 0
    for _ in range(generations):
        count = neighbours(field)
        field = ((count == 3) | ((field == 1) & (count == 2))).astype(dpnp.int32)
        most = max(most, int(field.sum()))
    return int(field.sum()), most


if __name__ == "__main__":
    living, most = run(*initialize())
    print(f"{living} cells live, at most {most} did")
