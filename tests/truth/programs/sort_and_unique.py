# Sorting, argsort, unique, searchsorted and set operations, which all need scratch memory.
# waits: no
import dpnp
import numpy

values = dpnp.asarray(numpy.random.default_rng(5).integers(0, 500, size=20_000))
ordered = dpnp.sort(values)
order = dpnp.argsort(values)
print(int(ordered[0]), int(ordered[-1]), bool((values[order] == ordered).all()))
distinct = dpnp.unique(values)
distinct, counts = dpnp.unique(values, return_counts=True)
print(distinct.shape, int(counts.sum()), int(counts.max()))
places = dpnp.searchsorted(distinct, dpnp.asarray([3, 77, 400]))
print(places.shape)
by_row = dpnp.sort(values.reshape(200, 100), axis=0)
print(by_row.shape, int(by_row[0].min()))
print(dpnp.partition(values, 50)[:50].shape)
