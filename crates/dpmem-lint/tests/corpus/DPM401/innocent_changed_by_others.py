import dpnp
import numpy

state = numpy.zeros(1000)


def advance():
    global state
    state = state + 1


class Source:
    def __init__(self):
        self.frame = numpy.zeros(100)

    def next(self):
        self.frame = numpy.random.rand(100)

    def run(self, x: dpnp.ndarray, n):
        for _ in range(n):
            self.next()
            x += dpnp.asarray(self.frame)


x = dpnp.zeros(1000)
for _ in range(100):
    advance()
    x += dpnp.asarray(state)
