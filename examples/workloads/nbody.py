"""Moves bodies under their mutual gravity with the leapfrog scheme and watches the energy."""

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


def acceleration(mass, position):
    """The pull of all bodies on each of them."""
    x = position[:, 0:1]
    y = position[:, 1:2]
    z = position[:, 2:3]
    dx = x.T - x
    dy = y.T - y
    dz = z.T - z
    inverse = (dx**2 + dy**2 + dz**2 + SOFTENING**2) ** -1.5
    ax = (dx * inverse) @ mass
    ay = (dy * inverse) @ mass
    az = (dz * inverse) @ mass
    return dpnp.hstack((ax, ay, az))


def kinetic_energy(mass, velocity):
    """Half of mass times speed squared, over all bodies."""
    return 0.5 * dpnp.sum(mass * velocity**2)


def run(mass, position, velocity, steps=60, dt=0.01):
    """The highest kinetic energy on the way."""
    pull = acceleration(mass, position)
    energies = []
    for _ in range(steps):
        velocity = velocity + pull * (dt / 2)
        position = position + velocity * dt
        pull = acceleration(mass, position)
        velocity = velocity + pull * (dt / 2)
        energies.append(float(kinetic_energy(mass, velocity)))
    return max(energies)


if __name__ == "__main__":
    print(f"highest kinetic energy {run(*initialize()):.6f}")
