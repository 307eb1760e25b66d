# A table that never changes is fetched in each round to look one row up.
# expect: DPM401 at fetch
import dpnp

table = dpnp.random.uniform(size=(300, 200))
total = 0.0
for i in range(100):
    row = dpnp.asnumpy(table)[i]  # @fetch
    total += float(row.max())
print(total)
