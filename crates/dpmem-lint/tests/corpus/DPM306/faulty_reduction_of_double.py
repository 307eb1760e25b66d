import dpnp


class Normalizer:
    def __init__(self, n):
        self.weights = dpnp.ones(n)
        self.x = dpnp.zeros(n, dtype=dpnp.float32)

    def apply(self):
        mean = self.weights.mean()
        return self.x - mean  #! DPM306 self.x - mean


result = Normalizer(5).apply()
