import dpnp


class Solver:
    def __init__(self):
        self.r = dpnp.ones(100)

    def solve(self):
        while dpnp.sum(self.r) > 1e-3:  #! DPM403 dpnp.sum(self.r) > 1e-3
            self.r *= 0.5
        for _ in range(1000):
            self.r *= 0.5
            if self.r.max() < 1e-6:  #! DPM403 self.r.max() < 1e-6
                break


Solver().solve()
