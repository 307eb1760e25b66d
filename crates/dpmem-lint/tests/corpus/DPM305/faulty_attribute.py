import dpnp


class State:
    def __init__(self, n, start):
        self.x = dpnp.zeros(n)  #! DPM305 dpnp.zeros(n)
        self.x[:] = start
        self.v = dpnp.ones(n)  #! DPM305 dpnp.ones(n)
        self.v.fill(0.5)
        self.a = dpnp.zeros(n)
        self.a[:] = self.x


state = State(4, 2.0)
