import dpnp


class Solver:
    def __init__(self, n):
        self.a = dpnp.ones((n, n))
        self.b = dpnp.ones(n)

    async def run(self, limit):
        step = 0
        while step < limit:
            r = self.a @ self.b - self.b  #! DPM301 self.a @ self.b - self.b
            step += 1
        return r
