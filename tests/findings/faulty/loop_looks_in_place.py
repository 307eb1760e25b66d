# x = x * 0.99 looks as if it worked in place.
# expect: DPM301 at decay
# allow: DPM207 at decay
import dpnp


def cool(x, steps):
    for _ in range(steps):
        x = x * 0.99  # @decay
    return x


print(float(cool(dpnp.ones((400, 400), dtype=dpnp.float32), 120).max()))
