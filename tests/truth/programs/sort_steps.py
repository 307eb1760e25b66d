# Sorts with a wait after each, though a sort frees scratch memory while it still allocates.
# waits: no
import dpnp
from _settle import settle

last = None
for n in (100, 1000, 20_000, 5_000):
    x = (dpnp.arange(n, dtype="i8") * 7919) % 1009
    settle(x)
    last = dpnp.sort(x)
    settle(last)
    order = dpnp.argsort(x)
    settle(order)
    print(n, last.shape, order.dtype)
    del x, order
