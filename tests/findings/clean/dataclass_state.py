# The state of a simulation is a dataclass of arrays that are updated in place.
import dataclasses

import dpnp


@dataclasses.dataclass
class Particles:
    position: dpnp.ndarray
    velocity: dpnp.ndarray
    scratch: dpnp.ndarray

    @classmethod
    def at_rest(cls, count):
        return cls(dpnp.random.uniform(size=(count, 3)), dpnp.zeros((count, 3)), dpnp.empty((count, 3)))

    def step(self, dt):
        dpnp.multiply(self.position, -dt, out=self.scratch)
        self.velocity += self.scratch
        dpnp.multiply(self.velocity, dt, out=self.scratch)
        self.position += self.scratch

    def energy(self):
        return float((self.velocity**2).sum() + (self.position**2).sum())


particles = Particles.at_rest(5_000)
before = particles.energy()
for _ in range(100):
    particles.step(0.01)
print(before, particles.energy())
