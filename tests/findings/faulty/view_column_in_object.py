# An object needs one column of a table.
# expect: DPM202 at table
import dpnp


class Prices:
    def __init__(self, days, columns):
        table = dpnp.random.uniform(1, 100, size=(days, columns))  # @table
        self.close = table[:, 3]

    def mean(self):
        return float(self.close.mean())


prices = Prices(5_000, 500)
print(prices.mean())
