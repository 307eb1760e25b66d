# A textbook Runge-Kutta step: every line makes new arrays, in every step.
# expect: DPM301 at first
# expect: DPM301 at second
# expect: DPM301 at next
# allow: DPM301
# allow: DPM207
# allow: DPM302
import dpnp


def slope(y):
    return -0.5 * y


def step(y, h):
    k1 = slope(y)
    k2 = slope(y + h / 2 * k1)  # @first
    k3 = slope(y + h / 2 * k2)  # @second
    k4 = slope(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)  # @next


y = dpnp.ones(30_000, dtype=dpnp.float32)
for _ in range(40):
    y = step(y, 0.01)
print(float(y[0]))
