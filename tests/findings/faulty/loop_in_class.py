# A wave equation whose step makes three arrays; integrated by a method.
# expect: DPM301 at laplace
# expect: DPM301 at advance
# allow: DPM207
# allow: DPM302
import dpnp


class Wave:
    def __init__(self, cells):
        self.now = dpnp.sin(dpnp.linspace(0, 6.28, cells))
        self.before = self.now.copy()

    def step(self):
        bend = dpnp.roll(self.now, 1) + dpnp.roll(self.now, -1) - 2 * self.now  # @laplace
        self.now, self.before = 2 * self.now - self.before + 0.1 * bend, self.now  # @advance


wave = Wave(60_000)
for _ in range(50):
    wave.step()
print(float(wave.now[7]))
