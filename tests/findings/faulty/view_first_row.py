# A function returns the first numbers of a big array, as a view.
# expect: DPM202 at field
import dpnp


def boundary(n):
    field = dpnp.ones((n, n), dtype=dpnp.float64)  # @field
    field *= 3
    return field[0, :16]


edge = boundary(1_500)
print(float(edge[3]))
