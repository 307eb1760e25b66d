# Masks and integer indices with a wait after each, though an operation frees memory while it still allocates.
# waits: no
import dpnp
from _settle import settle

x = dpnp.arange(4096, dtype="i4")
settle(x)
for divisor in (2, 5, 16):
    rest = x % divisor
    settle(rest)
    mask = rest == 0
    settle(mask)
    chosen = x[mask]
    settle(chosen)
    print(divisor, chosen.shape)
    positions = dpnp.nonzero(mask)[0]
    settle(positions)
    again = x[positions]
    settle(again)
    x[positions] = 1
    settle(x)
    del rest, mask, chosen, positions, again
