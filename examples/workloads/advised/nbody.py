"""nbody.py, with everything of a step written into arrays made once, and the energies read once at the end."""

import dpnp

SOFTENING = 0.1


def initialize(count=300):
    """Masses, positions and velocities, without total momentum."""
    dpnp.random.seed(17)
    mass = dpnp.ones((count, 1)) * (20.0 / count)
    position = dpnp.random.normal(0.0, 1.0, (count, 3))
    velocity = dpnp.random.normal(0.0, 1.0, (count, 3))
    velocity = velocity - velocity.mean(axis=0)
    return mass, position, velocity


class Pull:
    """The pull of all bodies on each of them, and the arrays that are needed to work it out."""

    def __init__(self, mass, count):
        self.mass = mass[:, 0].copy()
        self.distances = [dpnp.empty((count, count)) for _ in range(3)]
        self.inverse = dpnp.empty((count, count))
        self.square = dpnp.empty((count, count))
        self.parts = [dpnp.empty(count) for _ in range(3)]

    def at(self, position):
        """The acceleration of bodies at `position`."""
        inverse, square = self.inverse, self.square
        inverse.fill(SOFTENING**2)
        for axis, d in enumerate(self.distances):
            x = position[:, axis : axis + 1]
            dpnp.subtract(x.T, x, out=d)
            dpnp.power(d, 2, out=square)
            inverse += square
        dpnp.power(inverse, -1.5, out=inverse)
        for d, part in zip(self.distances, self.parts, strict=True):
            d *= inverse
            dpnp.matmul(d, self.mass, out=part)
        return dpnp.stack(self.parts, axis=1)


def run(mass, position, velocity, steps=60, dt=0.01):
    """The highest kinetic energy on the way."""
    pull = Pull(mass, position.shape[0])
    acceleration = pull.at(position)
    change = dpnp.empty_like(velocity)
    velocity = velocity.copy()
    position = position.copy()
    energies = dpnp.empty(steps)
    for step in range(steps):
        dpnp.multiply(acceleration, dt / 2, out=change)
        velocity += change
        dpnp.multiply(velocity, dt, out=change)
        position += change
        acceleration = pull.at(position)
        dpnp.multiply(acceleration, dt / 2, out=change)
        velocity += change
        dpnp.power(velocity, 2, out=change)
        change *= mass
        energies[step] = 0.5 * dpnp.sum(change)
    return float(energies.max())


if __name__ == "__main__":
    print(f"highest kinetic energy {run(*initialize()):.6f}")
