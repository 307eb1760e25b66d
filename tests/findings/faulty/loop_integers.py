# An integer hash, mixed again and again.
# expect: DPM301 at mix
# allow: DPM207 at mix
# allow: DPM302 at mix
import dpnp


class Mixer:
    def __init__(self, size):
        self.state = dpnp.arange(size, dtype=dpnp.uint32)

    def mix(self):
        self.state = (self.state << 3) ^ (self.state >> 2)  # @mix


mixer = Mixer(50_000)
rounds = 0
while rounds < 75:
    mixer.mix()
    rounds += 1
print(int(mixer.state[1]))
