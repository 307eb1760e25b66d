# Rows are stacked one by one, in an object.
# expect: DPM304 at grow
# allow: DPM201 at grow
# allow: DPM207 at grow
import dpnp


class Table:
    def __init__(self, columns):
        self.rows = dpnp.empty((0, columns))

    def add(self, row):
        self.rows = dpnp.vstack((self.rows, row))  # @grow


table = Table(512)
row = dpnp.ones(512)
for i in range(50):
    row[0] = i
    table.add(row)
print(table.rows.shape)
