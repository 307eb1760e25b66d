# A closure uses eight numbers of a table and owns all of it.
# expect: DPM202 at table
import dpnp


def make_lookup(n):
    table = dpnp.full((n, n), 2.5, dtype=dpnp.float32)  # @table
    row = table[n // 2, :8]

    def lookup(i):
        return float(row[i])

    return lookup


lookup = make_lookup(2_000)
print(lookup(3))
