import dpnp

big = dpnp.ones((1000, 1000))
row = big[0]
print(big.shape, row)


class Table:
    def __init__(self):
        values = dpnp.ones((1000, 1000))
        self.values = values
        self.first = values[0]

    def row(self, i):
        return self.values[i]


def both():
    values = dpnp.ones((1000, 1000))
    return values, values[0]
