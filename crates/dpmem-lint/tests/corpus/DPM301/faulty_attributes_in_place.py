import dpnp


class Wave:
    def __init__(self, n):
        self.u = dpnp.zeros((n, n))
        self.v = dpnp.ones((n, n))

    def run(self, steps):
        for _ in range(steps):
            self.u += self.v
            tmp = self.u * self.v  #! DPM301 self.u * self.v
        return tmp


tmp = Wave(4).run(30)
