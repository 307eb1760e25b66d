# Sums halves of an array recursively; every level works on views.
import dpnp


def tree_sum(x, leaf):
    if x.size <= leaf:
        return float(dpnp.sum(x))
    middle = x.size // 2
    return tree_sum(x[:middle], leaf) + tree_sum(x[middle:], leaf)


values = dpnp.arange(262_144, dtype=dpnp.float64)
print(tree_sum(values, 32_768))
