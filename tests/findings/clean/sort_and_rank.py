# Sorting, searching and unique values of one array.
import dpnp

values = dpnp.random.randint(0, 5_000, size=40_000)
ordered = dpnp.sort(values)
order = dpnp.argsort(values)
distinct = dpnp.unique(ordered)
places = dpnp.searchsorted(ordered, distinct)
print(distinct.size, int(places[-1]), bool((values[order] == ordered).all()))
