# Pi from 30 batches of random points; each batch gives one count.
import dpnp

BATCH = 50_000
mask = dpnp.empty(BATCH, dtype=bool)
hits = 0
for _ in range(30):
    x = dpnp.random.uniform(size=BATCH)
    y = dpnp.random.uniform(size=BATCH)
    dpnp.multiply(x, x, out=x)
    dpnp.multiply(y, y, out=y)
    dpnp.add(x, y, out=x)
    dpnp.less_equal(x, 1, out=mask)
    hits += int(dpnp.count_nonzero(mask))
print(4 * hits / (30 * BATCH))
