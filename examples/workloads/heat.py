"""Lets heat spread over a plate (explicit scheme) until hardly anything changes, and reads the middle."""

import dpnp


def initialize(size=300):
    """A cold plate with one hot edge."""
    plate = dpnp.zeros((size, size))
    plate[0, :] = 100.0
    return (plate,)


def run(plate, steps=150, tolerance=1e-3):
    """The temperature a few rows below the hot edge."""
    for _ in range(steps):
        inner = plate[1:-1, 1:-1]
        sides = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        new = plate.copy()
        new[1:-1, 1:-1] = inner + 0.24 * (sides - 4.0 * inner)
        change = float(dpnp.max(dpnp.abs(new - plate)))
        plate = new
        if change < tolerance:
            break
    return float(plate[8, plate.shape[1] // 2])


if __name__ == "__main__":
    print(f"temperature {run(*initialize()):.5f}")
