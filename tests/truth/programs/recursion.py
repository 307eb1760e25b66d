# A recursive merge sort and a deep recursion: many frames above each allocation.
# waits: no
import dpnp


def merge_sort(x):
    if x.shape[0] <= 64:
        return dpnp.sort(x)
    half = x.shape[0] // 2
    left, right = merge_sort(x[:half]), merge_sort(x[half:])
    places = dpnp.arange(half, dtype=dpnp.int64) + dpnp.searchsorted(right, left)
    out = dpnp.empty_like(x)
    rest = dpnp.ones(x.shape[0], dtype=bool)
    rest[places] = False
    out[places] = left
    out[rest] = right
    return out


def deep(n):
    return dpnp.ones(n + 1).sum() if n == 0 else deep(n - 1) + 1


x = (dpnp.arange(512, dtype="i8") * 7919) % 1021
y = merge_sort(x)
print(bool((y[1:] >= y[:-1]).all()), float(deep(60)))
