# Generators that hold arrays between their steps; one is exhausted, one closed, one left suspended.
# waits: no
import dpnp


def chunks(n, size):
    buffer = dpnp.empty(size, dtype="f8")
    for start in range(0, n, size):
        buffer[:] = dpnp.arange(start, start + size, dtype="f8")
        yield buffer * 2
    del buffer


print(sum(float(chunk.sum()) for chunk in chunks(4000, 500)))
closed = chunks(4000, 700)
print(next(closed).shape)
closed.close()
suspended = chunks(4000, 900)
print(next(suspended).shape, next(suspended).shape)
squares = (x * x for x in [dpnp.full(50, float(i)) for i in range(6)])
print([float(s[0]) for s in squares])
