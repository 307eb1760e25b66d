# A suspended generator owns the state of a random walk.
import dpnp


def walk(size):
    position = dpnp.zeros(size)
    step = dpnp.empty(size)
    while True:
        step[...] = dpnp.random.normal(size=size)
        position += step
        yield position


walker = walk(30_000)
for _ in range(15):
    position = next(walker)
print(position.shape)
