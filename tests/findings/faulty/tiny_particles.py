# Each of 2000 particles owns three numbers on the device.
# expect: DPM303 at place
# allow: DPM201 at place
# allow: DPM205 at place
import dpnp


class Particle:
    def __init__(self):
        self.place = dpnp.zeros(3)  # @place


particles = [Particle() for _ in range(2_000)]
for particle in particles[:10]:
    particle.place += 1
print(len(particles), float(particles[0].place[0]))
