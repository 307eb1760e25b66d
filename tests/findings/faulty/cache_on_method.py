# lru_cache(maxsize=None) on a method.
# expect: DPM205 at basis
# allow: DPM201 at basis
from functools import lru_cache

import dpnp


class Expansion:
    def __init__(self, points):
        self.x = dpnp.linspace(-1, 1, points)

    @lru_cache(maxsize=None)
    def basis(self, degree):
        return self.x**degree  # @basis


expansion = Expansion(150_000)
series = dpnp.zeros(150_000)
for degree in range(40):
    series += expansion.basis(degree)
print(float(series[0]))
