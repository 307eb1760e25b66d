# A debugging list at module level that somebody forgot.
# expect: DPM205 at trace
# allow: DPM201 at trace
# allow: DPM302 at trace
import dpnp

_trace = []


def step(x, y):
    dpnp.add(x, 0.5, out=y)
    _trace.append(y * 1.0)  # @trace
    return y, x


x, y = dpnp.zeros((300, 300)), dpnp.zeros((300, 300))
for _ in range(50):
    x, y = step(x, y)
print(float(x.sum()))
