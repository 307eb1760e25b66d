# Views allocate nothing and keep their block alive; assignment through a view and through a transposed view.
# waits: yes
import dpnp
from _settle import settle


def corner(n):
    block = dpnp.zeros((n, n), dtype="f8")
    settle(block)
    return block[:2, :2]


kept = [corner(n) for n in (64, 128, 256)]
for view in kept:
    view[0, :] = 3
    settle(view)
table = dpnp.zeros((40, 50), dtype="i4")
settle(table)
table[::2] = 7
settle(table)
table.T[3] = dpnp.ones(40, dtype="i4")
settle(table)
middle = table[10:20, 5:45:2]
flat = dpnp.reshape(middle, -1)
settle(flat)
reverse = flat[::-1]
reverse[:5] = table[0, :5]
settle(reverse)
print([int(v.sum()) for v in kept], int(table.sum()), int(flat.sum()))
settle(table)
del table, kept[0]
