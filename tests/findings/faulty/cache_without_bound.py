# functools.cache on a function that sees a new argument on every call.
# expect: DPM205 at grid
# allow: DPM201 at grid
import functools

import dpnp


@functools.cache
def grid(time):
    return dpnp.linspace(0, time + 1, 100_000)  # @grid


for step in range(50):
    points = grid(step * 0.01)
print(points.size, grid.cache_info().currsize)
