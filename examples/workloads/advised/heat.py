"""heat.py, with two plates that change places, one array to work in, and a look at the change every tenth step."""

import dpnp


def initialize(size=300):
    """A cold plate with one hot edge."""
    plate = dpnp.zeros((size, size))
    plate[0, :] = 100.0
    return (plate,)


def run(plate, steps=150, tolerance=1e-3):
    """The temperature a few rows below the hot edge."""
    new = plate.copy()
    plate = plate.copy()
    work = dpnp.empty((plate.shape[0] - 2, plate.shape[1] - 2))
    difference = dpnp.empty_like(plate)
    for step in range(1, steps + 1):
        dpnp.multiply(plate[1:-1, 1:-1], -4.0, out=work)
        work += plate[:-2, 1:-1]
        work += plate[2:, 1:-1]
        work += plate[1:-1, :-2]
        work += plate[1:-1, 2:]
        work *= 0.24
        dpnp.add(plate[1:-1, 1:-1], work, out=new[1:-1, 1:-1])
        plate, new = new, plate
        if step % 10 == 0:
            dpnp.subtract(plate, new, out=difference)
            dpnp.abs(difference, out=difference)
            if float(dpnp.max(difference)) < tolerance:
                break
    return float(plate[8, plate.shape[1] // 2])


if __name__ == "__main__":
    print(f"temperature {run(*initialize()):.5f}")
