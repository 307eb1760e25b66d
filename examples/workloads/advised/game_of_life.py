"""game_of_life.py, with the arrays of a generation made once."""

import dpnp


def initialize(size=400):
    """A field of which a third is alive."""
    dpnp.random.seed(5)
    return ((dpnp.random.random((size, size)) < 0.33).astype(dpnp.int32),)


def neighbours(field, count):
    """Writes into `count` for each cell how many of its eight neighbours live."""
    count.fill(0)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            if down or right:
                count += dpnp.roll(field, (down, right), axis=(0, 1))


def run(field, generations=60):
    """Living cells after `generations`, and the most that lived at once."""
    most = 0
    field = field.copy()
    count = dpnp.empty_like(field)
    three = dpnp.empty(field.shape, dtype=dpnp.bool)
    two = dpnp.empty(field.shape, dtype=dpnp.bool)
    alive = dpnp.empty(field.shape, dtype=dpnp.bool)
    for _ in range(generations):
        neighbours(field, count)
        dpnp.equal(count, 3, out=three)
        dpnp.equal(count, 2, out=two)
        dpnp.equal(field, 1, out=alive)
        alive &= two
        alive |= three
        field[...] = alive
        most = max(most, int(field.sum()))
    return int(field.sum()), most


if __name__ == "__main__":
    living, most = run(*initialize())
    print(f"{living} cells live, at most {most} did")
