# Three generators in a row, one array in flight between them.
import dpnp


def source(count):
    for i in range(count):
        yield dpnp.full(10_000 + 100 * i, float(i))


def scaled(arrays):
    for array in arrays:
        array *= 2
        yield array


def means(arrays):
    for array in arrays:
        yield float(array.mean())


print(sum(means(scaled(source(15)))))
