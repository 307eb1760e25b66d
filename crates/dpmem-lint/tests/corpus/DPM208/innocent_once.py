import dpnp


def main(n):
    x = dpnp.arange(n)
    result = x.asnumpy()
    few = []
    for name in ("a", "b"):
        few.append((name, dpnp.asnumpy(x)))
    return result, [dpnp.asnumpy(part) for part in (x, x)]
